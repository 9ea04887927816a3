"""Geometry of the Poincaré ball and the hyperboloid, row by row, in float64.

Distances and maps are accurate to a relative 1e-6 up to a norm of 0.99999 (really about 1e-10 for
distances), and to about 2**-51 / (1 - norm) beyond.
"""

from fastdx._core import (
    clamp,
    distance,
    exp_map,
    from_lorentz,
    log_map,
    lorentz_distance,
    lorentz_inner,
    mobius_add,
    to_lorentz,
)

__all__ = [
    "clamp",
    "distance",
    "exp_map",
    "from_lorentz",
    "log_map",
    "lorentz_distance",
    "lorentz_inner",
    "mobius_add",
    "to_lorentz",
]
