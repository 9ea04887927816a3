"""Confidence intervals of measurements, and Student's distribution, without scipy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastdx._core import binomial_bounds, student_tail
from fastdx.exceptions import ParameterError

__all__ = ["Interval", "bisected", "of_share", "over_texts", "quantile"]

RESAMPLES = 2000
"""The number of bootstrap samples of the texts."""


@dataclass(frozen=True)
class Interval:
    """A measured number with bounds. It prints as ``0.74 [0.72, 0.76]``."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def of_share(hits: int, tries: int, *, confidence: float = 0.95) -> Interval:
    """Return the share of hits and its exact (Clopper-Pearson) interval.

    Examples
    --------
    >>> from fastdx.lab.evaluation import of_share
    >>> print(of_share(5, 10))
    0.500 [0.187, 0.813]
    """
    if not 0 <= hits <= tries or tries < 1:
        raise ParameterError(f"hits must be from 0 to tries, got {hits} of {tries}")
    low, high = binomial_bounds([hits], tries, (1 - confidence) / 2)
    return Interval(hits / tries, float(low[0]), float(high[0]))


def over_texts(hits: ArrayLike, words: ArrayLike) -> Interval:
    """Return the share of words that were hit, and its interval of 95% over texts.

    Hits in one text depend on each other, so the interval treats texts as the samples. It contains
    the middle shares of 2,000 bootstrap samples of the texts, drawn with a fixed seed. It is never
    narrower than the interval of as many independent words (`of_share`), even if all texts agree.

    Parameters
    ----------
    hits, words : array_like of int, shape (texts,)
        The number of words hit in each text, and the number of words counted.

    Examples
    --------
    >>> from fastdx.lab.evaluation import over_texts
    >>> print(over_texts([1, 1, 1, 1], [2, 2, 2, 2]))  # eight words
    0.500 [0.157, 0.843]
    >>> print(over_texts([2, 0, 2, 0], [2, 2, 2, 2]))  # rather four texts
    0.500 [0.000, 1.000]
    """
    hit, counted = np.asarray(hits, dtype=np.int64), np.asarray(words, dtype=np.int64)
    if hit.shape != counted.shape or hit.ndim != 1 or not counted.sum() > 0:
        raise ParameterError("hits and words must be one of each text, of at least one word")
    alone = of_share(int(hit.sum()), int(counted.sum()))
    # A text without words carries no information.
    hit, counted = hit[counted > 0], counted[counted > 0]
    rng, even = np.random.default_rng(0), np.full(len(hit), 1 / len(hit))
    drawn = (rng.multinomial(len(hit), even) for _ in range(RESAMPLES))
    low, high = np.quantile([times @ hit / (times @ counted) for times in drawn], (0.025, 0.975))
    return Interval(alone.mean, min(float(low), alone.low), max(float(high), alone.high))


def quantile(confidence: float, degrees: float) -> float:
    """Return t so that Student's variable lies between -t and t with this probability.

    >>> round(quantile(0.95, 9), 6)
    2.262157
    """
    beyond = (1 - confidence) / 2
    return bisected(lambda t: student_tail(t, degrees) > beyond, 0.0, 1e12)


def bisected(below: Callable[[float], bool], low: float, high: float) -> float:
    """Return the border between numbers that are below it and others, by 100 halvings."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2
