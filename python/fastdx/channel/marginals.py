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

__all__ = ["Chain", "Likelihoods", "marginals"]

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


@dataclass(frozen=True)
class Likelihoods:
    """Pr[output | w] of outputs and every word w: all that an attacker can know of a mechanism.

    Made by `of`. One pass over all laws, which several attacks can share.
    """

    outputs: _Ids
    """Ids in ascending order."""
    table: NDArray[np.float32]
    """Shape (len(outputs), V)."""

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        outputs: _Ids | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Likelihoods:
        """Compute the laws of all words.

        Parameters
        ----------
        mechanism : Mechanism
            One that has a law.
        outputs : ndarray of uint32, optional
            Those that are of interest. All of them take 4·V² bytes: 1.6 GB for 20,000 words.
        progress : callable, optional
            Called now and then with the number of words done.

        Examples
        --------
        >>> from fastdx import Embedding, Tem
        >>> from fastdx.attacks import Likelihoods
        >>> e = Embedding(["a", "b", "c"], [[0.0], [0.1], [5.0]])
        >>> Likelihoods.of(Tem(e, 4.0)).table.shape
        (3, 3)
        """
        words = mechanism.space.words
        every = np.arange(len(words), dtype=np.uint32)
        wanted = every if outputs is None else np.unique(outputs)
        table = np.empty((len(wanted), len(words)), dtype=np.float32)
        with ThreadPoolExecutor(mechanism.threads or os.cpu_count()) as pool:
            # Few at a time: a pool that is handed all words holds all laws.
            for first in range(0, len(words), AT_ONCE):
                part = slice(first, first + AT_ONCE)
                laws = np.array(list(pool.map(mechanism.probabilities, words[part])))
                table[:, part] = laws[:, wanted].T
                if progress:
                    progress(min(first + AT_ONCE, len(words)))
        return cls(wanted, table)

    def __call__(self, out: _Ids) -> NDArray[np.float32]:
        """Return the rows of these outputs, shape (len(out), V)."""
        return self.table[np.searchsorted(self.outputs, out)]


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
