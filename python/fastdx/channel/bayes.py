"""Shares of words behind outputs, by EM: what `fastdx.sklearn.ChannelNB` learns of each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastdx.channel.features import laws
from fastdx.channel.law import Channel

_Numbers = NDArray[np.float64]


def columns_of(channel: Channel, outputs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return Pr[output | word] of some outputs: float32, shape (V, len(outputs))."""
    found = np.empty((len(channel.mechanism.space), len(outputs)), dtype=np.float32)
    for ids, law in laws(channel):
        found[ids] = law[:, outputs]
    return found


def shares_behind(
    columns: NDArray[np.float32], counts: _Numbers, smooth: _Numbers, rounds: int
) -> _Numbers:
    """Return the shares of words that explain counts of outputs: float64, shape (n, V).

    Each row maximises Σ_y counts_y·ln (θ·K)_y + Σ_w smooth_w·ln θ_w over the shares θ, as far as
    some rounds of EM bring it from shares like `smooth`; no round makes it smaller.

    Parameters
    ----------
    columns : ndarray of float32, shape (V, m)
        K of the m outputs that are counted.
    counts : ndarray of float, shape (n, m)
        How often each collection has each output.
    smooth : ndarray of float, shape (V,)
        Counts of words that are added to all: a Dirichlet prior of 1 + smooth.
    rounds : int
        Rounds of EM.
    """
    shares = np.tile(smooth / smooth.sum(), (len(counts), 1))
    for _ in range(rounds):
        expected = shares @ columns
        weights = np.divide(counts, expected, out=np.zeros_like(expected), where=expected > 0)
        shares *= weights @ columns.T
        shares += smooth
        shares /= shares.sum(axis=1, keepdims=True)
    return shares
