"""Student's distribution, without scipy, which fastdx does not need otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable

_STEPS = 300
"""Terms of the continued fraction at most; it takes about as many as √degrees."""


def tail(t: float, degrees: float) -> float:
    """Return Pr[T > t] of Student's distribution for t ≥ 0.

    By the incomplete beta function (Abramowitz and Stegun 26.5.27, 26.5.8).

    >>> round(tail(2.0, 10), 6)
    0.036694
    """
    if math.isinf(t):
        return 0.0
    return 0.5 * _beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def quantile(confidence: float, degrees: float) -> float:
    """Return t so that Student's variable lies between -t and t with this probability.

    >>> round(quantile(0.95, 9), 6)
    2.262157
    """
    beyond = (1 - confidence) / 2
    low, high = 0.0, 1.0
    while tail(high, degrees) > beyond:
        low, high = high, 2 * high
    return bisected(lambda t: tail(t, degrees) > beyond, low, high)


def bisected(below: Callable[[float], bool], low: float, high: float) -> float:
    """Return the border between numbers that are below it and others, by 100 halvings."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def _beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log + a * math.log(x) + b * math.log1p(-x)) / a
    # Lentz's way with the continued fraction.
    value, c, d = 1.0, 1.0, 0.0
    for step in range(_STEPS):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        if abs(1 - c * d) < 1e-14:
            break
    return front * (value - 1)
