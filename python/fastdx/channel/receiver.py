"""The best receiver's estimate for each output, in one pass over all laws."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import ChannelCore, NgramPrior
from fastdx._shared.laws import laws
from fastdx.exceptions import ParameterError

_Numbers = NDArray[np.float64]


Prior: TypeAlias = ArrayLike | str | NgramPrior | None
"""How often each word is written: numbers, 'rank', or a model that knows it."""


def numbers_of(prior: Prior) -> ArrayLike | None:
    """Return the numbers of a prior; None for 'rank'."""
    if isinstance(prior, str):
        if prior != "rank":
            raise ParameterError(f"prior must be numbers, a model or 'rank', got {prior!r}")
        return None
    return prior.frequencies if isinstance(prior, NgramPrior) else prior


def by_rank(prior: Prior, count: int) -> _Numbers:
    """Return a prior as numbers that sum to 1; without one 1/(rank + 2.7)."""
    numbers = numbers_of(prior)
    ranks: _Numbers = 1 / (np.arange(count) + 3.7)
    given = ranks if numbers is None else np.asarray(numbers, dtype=np.float64)
    if given.shape != (count,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ParameterError(f"prior must be {count} numbers, at least 0 and of a positive sum")
    normal: _Numbers = given / given.sum()
    return normal


def posterior_sums(
    core: ChannelCore, prior: _Numbers, values: _Numbers
) -> tuple[_Numbers, _Numbers]:
    """Return p(y) and Σ_w π_w·Pr[y|w]·values_w of every output y: shapes (V,) and (V, n)."""
    likely = np.zeros(len(prior))
    sums = np.zeros((len(prior), values.shape[1]))
    for part, law in laws(core, len(prior)):
        likely += prior[part] @ law
        sums += law.T @ (prior[part, None] * values[part])
    return likely, sums
