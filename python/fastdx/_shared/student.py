"""Student's distribution, without scipy, which fastdx does not need otherwise."""

from __future__ import annotations

from collections.abc import Callable

from fastdx._core import student_tail as tail

__all__ = ["bisected", "quantile", "tail"]


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
