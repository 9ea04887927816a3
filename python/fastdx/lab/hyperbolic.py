"""Geometry of the Poincaré ball and the hyperboloid, row by row, in float64.

Distances and maps are accurate to a relative 1e-6 up to a norm of 0.99999 (really about 1e-10 for
distances), and to about 2**-51 / (1 - norm) beyond. On the hyperboloid a point of the ball at
distance ρ from the origin has the coordinates (cosh ρ, sinh ρ·x/‖x‖), time first; of x, shape
(m, n), they have the shape (m, n + 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import clamp, distance, exp_map, log_map, mobius_add
from fastdx.exceptions import ShapeError, VectorError

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

_Floats = NDArray[np.float64]


def _coordinates(name: str, y: ArrayLike) -> _Floats:
    """Return coordinates on the hyperboloid; refuse those of points that are not on it."""
    y = np.asarray(y, np.float64)
    if y.ndim != 2 or y.shape[1] < 2:
        raise ShapeError(f"{name} has shape {y.shape}, expected (m, n + 1) with n at least 1")
    time = np.hypot(1.0, np.linalg.norm(y[:, 1:], axis=1))
    # Also refuses NaN and infinity.
    off = ~((np.abs(y[:, 0] - time) <= 1e-6 * time) & np.isfinite(time))
    if off.any():
        raise VectorError(
            f"{name}, row {off.argmax()}, is not on the hyperboloid: its time is not "
            "√(1 + its other norm²)"
        )
    return y


def to_lorentz(x: ArrayLike) -> _Floats:
    """Return the coordinates on the hyperboloid of points of the ball.

    Examples
    --------
    >>> from fastdx.lab.hyperbolic import to_lorentz
    >>> to_lorentz([[0.5, 0.0]]).round(6).tolist()
    [[1.666667, 1.333333, 0.0]]
    """
    x = np.asarray(x, np.float64)
    distance(x, x)  # checks the points
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    inside = (1 - norm) * (1 + norm)
    return np.hstack([(1 + norm**2) / inside, 2 * x / inside])


def from_lorentz(y: ArrayLike) -> _Floats:
    """Return the points of the ball that have these coordinates."""
    y = _coordinates("y", y)
    time = np.hypot(1.0, np.linalg.norm(y[:, 1:], axis=1, keepdims=True))
    return np.asarray(y[:, 1:] / (1 + time))


def lorentz_inner(x: ArrayLike, y: ArrayLike) -> _Floats:
    """Return ⟨x,y⟩ = -x₀y₀ + Σxᵢyᵢ of rows: -cosh d(x,y) for points of the hyperboloid."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 2 or x.shape != y.shape or x.shape[1] < 2:
        raise ShapeError(f"x and y have shapes {x.shape} and {y.shape}, expected (m, n + 1)")
    return np.asarray(np.sum(x[:, 1:] * y[:, 1:], axis=1) - x[:, 0] * y[:, 0])


def lorentz_distance(x: ArrayLike, y: ArrayLike) -> _Floats:
    """Return the hyperbolic distances of rows, arcosh(-⟨x,y⟩).

    The inner product cancels terms of e^(2ρ), so the distance is that of the points in the ball.
    With s = 2/(1 + x₀) for 1 - ‖x‖², it is arcosh(1 + 2·‖x - y‖²/(s_x·s_y)).
    """
    x, y = _coordinates("x", x), _coordinates("y", y)
    if x.shape != y.shape:
        raise ShapeError(f"y has shape {y.shape}, expected {x.shape}")
    above = [1 + np.hypot(1.0, np.linalg.norm(z[:, 1:], axis=1, keepdims=True)) for z in (x, y)]
    apart = np.linalg.norm(x[:, 1:] / above[0] - y[:, 1:] / above[1], axis=1)
    half = apart * np.sqrt(above[0] * above[1])[:, 0] / 2
    return np.asarray(2 * np.arcsinh(half))
