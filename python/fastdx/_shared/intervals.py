"""Confidence intervals of measurements, and Student's distribution, without scipy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastdx._core import binomial_bounds, student_tail
from fastdx._shared.checks import inside
from fastdx.exceptions import ParameterError

__all__ = ["Interval", "bisected", "of_share", "over_texts", "over_trials", "quantile"]

RESAMPLES = 2000
"""The number of bootstrap samples of the texts."""
AT_ONCE = 1 << 22
"""The number of weights of resampled texts in memory at a time."""


@dataclass(frozen=True)
class Interval:
    """A measured number with bounds. It prints as ``0.74 [0.72, 0.76]``."""

    mean: float
    low: float
    high: float
    confidence: float = 0.95
    """The probability with which such bounds contain the true number."""

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
    return Interval(hits / tries, float(low[0]), float(high[0]), confidence)


def over_texts(hits: ArrayLike, words: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Return the share of words that were hit, and its interval over texts.

    Hits in one text depend on each other, so the interval treats texts as the samples. It contains
    the middle shares of 2,000 bootstrap samples of the texts, drawn with a fixed seed. It is never
    narrower than the interval of as many independent words (`of_share`), even if all texts agree.

    Parameters
    ----------
    hits, words : array_like of int, shape (texts,)
        The number of words hit in each text, and the number of words counted.
    confidence : float, optional
        The confidence of the interval.

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
    inside("confidence", confidence)
    alone = of_share(int(hit.sum()), int(counted.sum()), confidence=confidence)
    # A text without words carries no information.
    hit, counted = hit[counted > 0], counted[counted > 0]
    rng = np.random.default_rng(0)
    texts = len(hit)
    shares = []
    for first in range(0, RESAMPLES, step := max(1, AT_ONCE // texts)):
        size = min(step, RESAMPLES - first)
        weights = rng.multinomial(texts, np.full(texts, 1 / texts), size)
        shares.append((weights @ hit) / (weights @ counted))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(shares), (tail, 1 - tail))
    return Interval(alone.mean, min(float(low), alone.low), max(float(high), alone.high),
                    confidence)  # fmt: skip


def over_trials(
    values: Iterable[float],
    *,
    reused: float = 0.0,
    confidence: float = 0.95,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Return the mean of independent trials and its Student interval.

    Parameters
    ----------
    values : iterable of float
        The value of each trial; at least two.
    reused : float, optional
        For trials that are different splits of the same texts: the number of test texts divided by
        the number of training texts. Such trials are not independent, so the interval is widened as
        in Nadeau and Bengio (2003, "Inference for the generalization error").
    confidence : float, optional
        The confidence of the interval.
    within : (float, float), optional
        The range of possible values; the interval is cut to it.

    Examples
    --------
    >>> from fastdx.lab.evaluation import over_trials
    >>> print(over_trials([0.7, 0.8, 0.9]))
    0.800 [0.552, 1.048]
    """
    x = np.asarray(list(values), dtype=np.float64)
    if len(x) < 2:
        raise ParameterError(f"values must be at least 2 trials, got {len(x)}")
    error = float(np.sqrt(x.var(ddof=1) * (1 / len(x) + reused)))
    half = quantile(inside("confidence", confidence), len(x) - 1) * error
    mean = float(x.mean())
    return Interval(mean, max(mean - half, within[0]), min(mean + half, within[1]), confidence)


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
