"""What the best receiver of a release makes of each output: one pass over all laws."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

__all__ = ["by_rank", "matrix_of", "posterior_sums"]

_Numbers = NDArray[np.float64]

AT_ONCE = 256


def by_rank(prior: Any, count: int) -> _Numbers:
    """Return a prior as numbers that sum to 1; without one 1/(rank + 2.7)."""
    ranks: _Numbers = 1 / (np.arange(count) + 3.7)
    given = ranks if prior is None else np.asarray(prior, dtype=np.float64)
    if given.shape != (count,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ParameterError(f"prior must be {count} numbers, at least 0 and of a positive sum")
    normal: _Numbers = given / given.sum()
    return normal


def matrix_of(name: str, values: ArrayLike, rows: int) -> NDArray[np.float32]:
    """Return finite numbers of so many rows, in 32 bits."""
    try:
        given = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be numbers") from None
    if given.ndim != 2 or len(given) != rows or not given.shape[1]:
        raise ParameterError(f"{name} must have the shape ({rows}, n), got {given.shape}")
    if not np.isfinite(given).all():
        raise ParameterError(f"{name} must be finite")
    return given


def posterior_sums(
    mechanism: Mechanism,
    prior: _Numbers,
    values: NDArray[np.float32],
    progress: Callable[[int], object] | None = None,
) -> tuple[_Numbers, _Numbers]:
    """Return p(y) and Σ_w π_w·Pr[y|w]·values_w of every output y: shapes (V,) and (V, n)."""
    words = mechanism.space.words
    likely = np.zeros(len(words))
    sums = np.zeros((len(words), values.shape[1]))
    with ThreadPoolExecutor(mechanism.threads or os.cpu_count()) as pool:
        # Few at a time: a pool that is handed all words holds all laws.
        for first in range(0, len(words), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            laws = np.array(list(pool.map(mechanism.probabilities, words[part])))
            laws *= prior[part, None]
            likely += laws.sum(axis=0)
            sums += laws.astype(np.float32).T @ values[part]
            if progress:
                progress(min(first + AT_ONCE, len(words)))
    return likely, sums
