"""Confidence intervals of measured shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastdx._core import binomial_bounds
from fastdx.exceptions import ParameterError

__all__ = ["Interval", "of_share", "over_texts"]

RESAMPLES = 2000
"""The number of bootstrap samples of the texts."""
AT_ONCE = 1 << 22
"""The number of weights of resampled texts in memory at a time."""


@dataclass(frozen=True)
class Interval:
    """A measured number with bounds. It prints as ``0.74 [0.72, 0.76]``."""

    mean: float
    """The measured number."""
    low: float
    """The lower bound."""
    high: float
    """The upper bound."""
    confidence: float = 0.95
    """The probability with which such bounds contain the true number."""

    def __str__(self) -> str:
        """Return number and bounds to three digits."""
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
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
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
