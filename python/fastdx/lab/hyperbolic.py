"""Geometry of the Poincaré ball and the hyperboloid, row by row, in float64.

Distances and maps are accurate to a relative 1e-6 up to a norm of 0.99999 (really about 1e-10 for
distances), and to about 2**-51 / (1 - norm) beyond. On the hyperboloid a point of the ball at
distance ρ from the origin has the coordinates (cosh ρ, sinh ρ·x/‖x‖), time first; of x, shape
(m, n), they have the shape (m, n + 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx.exceptions import ShapeError, VectorError

__all__ = [
    "clamp",
    "distance",
    "exp_map",
    "log_map",
    "lorentz_distance",
    "mobius_add",
    "to_lorentz",
]

_Floats = NDArray[np.float64]
_LARGEST = 1 - 2.0**-50
"""The largest norm of a point that a tangent vector reaches from the origin."""
_CLAMPED = 1 - 1e-5


def _points(name: str, x: ArrayLike) -> _Floats:
    """Return points of the ball, shape (m, n); refuse others."""
    x = np.asarray(x, np.float64)
    if x.ndim != 2 or not x.shape[1]:
        raise ShapeError(f"{name} has shape {x.shape}, expected (m, n) with n at least 1")
    outside = ~(_norm2(x)[:, 0] < 1)  # also NaN
    if outside.any():
        raise VectorError(f"{name}, row {outside.argmax()}, is not a point inside the unit ball")
    return x


def _like(name: str, y: ArrayLike, x: _Floats) -> _Floats:
    """Return the numbers as rows of the shape of x."""
    y = np.asarray(y, np.float64)
    if y.shape != x.shape:
        raise ShapeError(f"{name} has shape {y.shape}, expected {x.shape}")
    return y


def _norm2(x: _Floats) -> _Floats:
    return np.asarray(np.sum(x * x, axis=1, keepdims=True))


def distance(x: ArrayLike, y: ArrayLike) -> _Floats:
    """Return the hyperbolic distances of the rows of two matrices of points of the Poincaré ball.

    x and y have the shape (m, n), with norms below 1; the result has the shape (m,).

    Examples
    --------
    >>> from fastdx.lab.hyperbolic import distance
    >>> round(float(distance([[0.0, 0.0]], [[0.5, 0.0]])[0]), 6)   # ln 3
    1.098612
    """
    x = _points("x", x)
    y = _points("y", _like("y", y, x))
    inside = (1 - _norm2(x)) * (1 - _norm2(y))
    return np.asarray(2 * np.arcsinh(np.sqrt(_norm2(x - y) / inside)))[:, 0]


def mobius_add(a: ArrayLike, b: ArrayLike) -> _Floats:
    """Return the Möbius addition of rows, a ⊕ b: the isometry that takes the origin to a, of b.

    Both are points of the ball, shape (m, n); so is the result.
    """
    a = _points("a", a)
    b = _points("b", _like("b", b, a))
    # 1 + 2ab + ‖a‖²‖b‖² = ‖a + b‖² + (1-‖a‖²)(1-‖b‖²) is accurate where a and b nearly cancel. The
    # coefficient of a, 1 + 2ab + ‖b‖², is (1-‖a‖²) + ‖a + b‖².
    sum2, inside = _norm2(a + b), 1 - _norm2(a)
    return np.asarray(((a + b) * inside + a * sum2) / (sum2 + inside * (1 - _norm2(b))))


def exp_map(x: ArrayLike, v: ArrayLike) -> _Floats:
    """Return the points that tangent vectors v at x reach, of hyperbolic length 2‖v‖/(1-‖x‖²).

    x are points of the ball, v vectors, both of shape (m, n), as is the result.
    """
    x = _points("x", x)
    v = _like("v", v, x)
    norm = np.sqrt(_norm2(v))
    step = v * (np.tanh(norm / (1 - _norm2(x))) / np.where(norm > 0, norm, 1))
    return mobius_add(x, step * np.minimum(1, _LARGEST / np.maximum(np.sqrt(_norm2(step)), 0.5)))


def log_map(x: ArrayLike, y: ArrayLike) -> _Floats:
    """Return the tangent vectors at rows of x that lead to rows of y: the inverse of `exp_map`.

    x and y are points of the ball, shape (m, n), as is the result.
    """
    # artanh‖-x ⊕ y‖ = d/2, taken from the distance, which is accurate near the boundary.
    d = distance(x, y)[:, None]
    x = np.asarray(x, np.float64)
    moved = mobius_add(-x, y)
    norm = np.sqrt(_norm2(moved))
    return np.asarray(moved * ((1 - _norm2(x)) * d / 2 / np.where(norm > 0, norm, 1)))


def clamp(x: ArrayLike) -> _Floats:
    """Return proj(θ) = θ/‖θ‖·(1-λ) for rows of x outside the ball of radius 1 - λ; others stay.

    x are vectors, shape (m, n), and λ is ICDM'19's 1e-5.
    """
    x = np.asarray(x, np.float64)
    if x.ndim != 2:
        raise ShapeError(f"x has shape {x.shape}, expected (m, n)")
    norm = np.sqrt(_norm2(x))
    return np.where(norm > _CLAMPED, x * (_CLAMPED / np.where(norm > 0, norm, 1)), x)


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
    x = _points("x", x)
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    inside = (1 - norm) * (1 + norm)
    return np.hstack([(1 + norm**2) / inside, 2 * x / inside])


def lorentz_distance(x: ArrayLike, y: ArrayLike) -> _Floats:
    """Return the hyperbolic distances of rows, arcosh(-⟨x,y⟩), ⟨x,y⟩ = -x₀y₀ + Σxᵢyᵢ.

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
