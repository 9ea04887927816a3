"""The exact posterior of each word of a sentence, given all outputs: sums over all sentences.

Nothing is cut off. A table of the likeliest words behind each output would not do: of a protective
mechanism they hold half of the posterior.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastdx.mechanisms import Mechanism

__all__ = ["Chain", "columns", "marginals"]

_Ids = NDArray[np.uint32]
_Numbers = NDArray[np.float64]

AT_ONCE = 256


@dataclass(frozen=True)
class Chain:
    """Which word follows which: Pr[w | u] is the weight of the pair, if any, + rest_u·π_w."""

    first: NDArray[np.int64]
    """u of each pair that was seen."""
    second: NDArray[np.int64]
    """w of each."""
    weights: _Numbers
    rest: _Numbers
    """What the pairs of each u leave to frequencies, shape (V,)."""
    frequencies: _Numbers
    """π, shape (V,)."""

    def after(self, p: _Numbers) -> _Numbers:
        """Return Σ_u p_u·Pr[w | u] of every w."""
        seen = np.bincount(self.second, self.weights * p[self.first], len(p))
        found: _Numbers = seen + self.frequencies * (self.rest @ p)
        return found

    def before(self, p: _Numbers) -> _Numbers:
        """Return Σ_w Pr[w | u]·p_w of every u."""
        seen = np.bincount(self.first, self.weights * p[self.second], len(p))
        found: _Numbers = seen + self.rest * (self.frequencies @ p)
        return found


def columns(
    mechanism: Mechanism, outputs: _Ids, progress: Callable[[int], object] | None = None
) -> NDArray[np.float32]:
    """Return Pr[output | w] of every word w, shape (len(outputs), V), from all laws."""
    words = mechanism.space.words
    found = np.empty((len(outputs), len(words)), dtype=np.float32)
    with ThreadPoolExecutor(mechanism.threads or os.cpu_count()) as pool:
        # Few at a time: a pool that is handed all words holds all laws.
        for first in range(0, len(words), AT_ONCE):
            laws = pool.map(mechanism.probabilities, words[first : first + AT_ONCE])
            for w, law in enumerate(laws, first):
                found[:, w] = law[outputs]
            if progress:
                progress(min(first + AT_ONCE, len(words)))
    return found


def marginals(chain: Chain, likelihood: NDArray[np.float32]) -> _Numbers:
    """Return Pr[w at place i | all outputs], of likelihoods of the same shape (places, V).

    Forward and backward sums, each step the pairs that were seen and one outer product.
    """
    found = np.empty(likelihood.shape)
    state = chain.frequencies
    for i, own in enumerate(likelihood):
        state = (chain.after(state) if i else state) * own
        state = state / state.sum()
        found[i] = state
    message = np.ones(likelihood.shape[1])
    for i in range(len(likelihood) - 2, -1, -1):
        message = chain.before(message * likelihood[i + 1])
        message /= message.max()
        found[i] *= message
    found /= found.sum(axis=1, keepdims=True)
    return found
