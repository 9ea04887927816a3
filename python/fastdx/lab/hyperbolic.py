"""Geometry of the Poincaré ball, row by row, in float64.

Distances and maps are accurate to a relative 1e-6 up to a norm of 0.99999 (really about 1e-10 for
distances), and to about 2**-51 / (1 - norm) beyond.
"""

from fastdx._core import clamp, distance, exp_map, log_map, mobius_add

__all__ = ["clamp", "distance", "exp_map", "log_map", "mobius_add"]
