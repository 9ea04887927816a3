"""Words of two groups compared: p-values that include the bias, false discoveries bounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastdx._core import student_tail
from fastdx._shared.intervals import quantile

Mean = tuple[float, float, int]
"""A mean, its standard error, and the number of documents."""


@dataclass(frozen=True)
class Difference:
    """How differently often two groups write a word."""

    word: str
    """The word."""
    value: float
    """Its share in the first group less that in the second."""
    low: float
    """The lower end of the interval of this difference."""
    high: float
    """The upper end."""
    bias: float
    """The part of the interval that allows for bias."""
    p_value: float
    """How probable so large a difference is at most where the shares are the same."""
    differs: bool
    """Whether it is a discovery at the rate asked for."""


def differences(
    found: Sequence[tuple[str, Sequence[Mean], float]], rate: float, confidence: float
) -> list[Difference]:
    """Turn means of two groups into differences, smallest p-values first."""
    rows = []
    for word, ((first, e, n), (second, f, m)), bias in found:
        value, error, degrees = first - second, math.hypot(e, f), min(n, m) - 1
        beyond = max(abs(value) - bias, 0.0)
        p = min(2 * student_tail(beyond / error, degrees), 1.0) if error > 0 else float(beyond == 0)
        half = bias + quantile(confidence, degrees) * error
        rows.append((word, value, value - half, value + half, bias, p))
    marked = discovered(np.array([row[-1] for row in rows]), rate)
    made = [Difference(*row, bool(mark)) for row, mark in zip(rows, marked, strict=True)]
    return sorted(made, key=lambda d: (d.p_value, -abs(d.value), d.word))


def discovered(p_values: NDArray[np.float64], rate: float) -> NDArray[np.bool_]:
    """Mark discoveries of which at most the share `rate` is false, in expectation.

    Benjamini and Yekutieli 2001, which holds however tests depend on each other.

    >>> import numpy as np
    >>> discovered(np.array([0.001, 0.5, 0.02]), 0.06).tolist()
    [True, False, True]
    """
    count = len(p_values)
    if not count:
        return np.zeros(0, dtype=np.bool_)
    divided = sum(1 / i for i in range(1, count + 1))
    order = np.argsort(p_values, kind="stable")
    below = p_values[order] <= rate * np.arange(1, count + 1) / (count * divided)
    last = int(np.flatnonzero(below).max()) + 1 if below.any() else 0
    marked = np.zeros(count, dtype=np.bool_)
    marked[order[:last]] = True
    return marked
