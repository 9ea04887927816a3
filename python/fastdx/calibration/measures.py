"""N_w, S_w, support, credible inputs, K_w and entropies of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastdx._core import ChannelCore, binomial_bounds, closed_forms
from fastdx._shared.checks import check_type, counted, inside
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

Table: TypeAlias = np.recarray[Any, np.dtype[Any]]
"""Named columns: ``table["N_w"]``. Rows have the same names, and libraries of frames take it."""

SAMPLE = 200
"""How many words, spread over the vocabulary, are measured for a noise mechanism by default."""
MOST_DRAWS = 10**8
"""The most draws of a word."""
COLUMNS = 256
"""Columns of the law that are held at a time."""


def _table(**columns: NDArray[Any]) -> Table:
    """Return columns of equal length as one structured array."""
    kinds = [(name, column.dtype) for name, column in columns.items()]
    return np.rec.fromarrays(columns.values(), dtype=kinds)


def measured_ids(mechanism: Mechanism, words: Iterable[str] | None) -> NDArray[np.uint32]:
    """Return the ids of the words to measure."""
    check_type("mechanism", mechanism, Mechanism)
    if words is not None:
        ids = mechanism.space.ids(words)
        if not len(ids):
            raise ParameterError("words must be at least one, got none")
        return ids
    return spread(mechanism, len(mechanism.space) if mechanism.has_law else SAMPLE)


def statistics(
    mechanism: Mechanism,
    words: Iterable[str] | None = None,
    draws: int = 1000,
    *,
    eta: float = 0.05,
    near: int = 10,
    inputs: bool = True,
    confidence: float = 0.99,
) -> Table:
    """Measure a mechanism on words.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanisms with a law (Tem, for example) are measured in closed form, others by simulation.
    words : iterable of str, optional
        The words to measure. By default the whole vocabulary for a mechanism with a law, 200 words
        spread over it for the others.
    draws : int, optional
        Draws per word in a simulation; also the number of draws that S_w refers to.
    eta : float, optional
        Support and credible inputs are sizes of sets of probability 1 - eta.
    near : int, optional
        The column ``near`` is the probability that the output is among so many nearest words.
    inputs : bool, optional
        Whether to compute credible_inputs, which needs the laws of the whole vocabulary.
    confidence : float, optional
        The confidence of the bounds of a simulated N_w.

    Returns
    -------
    Table
        word, N_w, N_w_low and N_w_high (all three equal if exact), support and S_w (its expectation
        for a mechanism with a law). For a mechanism with a law also credible_inputs, shannon,
        min_entropy and hartley (bits), and near; in a simulation K_w, which counts measured words
        only.
    """
    inside("confidence", confidence)
    ids = measured_ids(mechanism, words)
    names = np.array(mechanism.space.words, dtype=object)[ids]
    if mechanism.has_law:
        more = {"credible_inputs": _credible_inputs(mechanism, ids, eta)} if inputs else {}
        [found] = closed_forms(mechanism, ids, eta, near, draws)
        return _exact(names, len(mechanism.space), found, **more)
    if not 0 <= eta < 1:
        raise ParameterError(f"eta must be from 0 to below 1, got {eta}")
    unchanged, distinct, outputs, k = _simulated(mechanism, ids, draws, eta)
    low, high = binomial_bounds(unchanged, draws, (1 - confidence) / 2)
    return _table(word=names, N_w=unchanged / draws, N_w_low=low, N_w_high=high, support=outputs,
                 S_w=distinct.astype(float), K_w=k)  # fmt: skip


def _credible_inputs(
    mechanism: Mechanism, ids: NDArray[np.uint32], eta: float
) -> NDArray[np.int64]:
    core, found = ChannelCore(mechanism), np.zeros(len(ids), dtype=np.int64)
    for first in range(0, len(ids), COLUMNS):
        some = slice(first, first + COLUMNS)
        sums = np.sort(core.columns(ids[some]), axis=1)[:, ::-1].cumsum(axis=1)
        found[some] = 1 + (sums < (1 - eta) * sums[:, -1:]).sum(axis=1)
    return found


def _simulated(
    mechanism: Mechanism, ids: NDArray[np.uint32], draws: int, eta: float
) -> NDArray[np.int64]:
    """Count draws of each word: those of itself, distinct outputs, the support's size, and K_w."""
    mechanism._check_one_law()
    draws = counted("draws", draws, 1, MOST_DRAWS)
    inputs = np.zeros(len(mechanism.space), dtype=np.int64)
    found = np.zeros((4, len(ids)), dtype=np.int64)
    for at, word in enumerate(ids):
        drawn = mechanism.privatize_ids(np.full(draws, word))
        outputs, times = np.unique(drawn, return_counts=True)
        inputs[outputs] += 1
        sums = np.sort(times)[::-1].cumsum()
        support = 1 + np.searchsorted(sums, (1 - eta) * draws)
        found[:3, at] = times[outputs == word].sum(), len(outputs), support
    found[3] = inputs[ids]
    return found


def _exact(
    names: NDArray[Any], count: int, found: NDArray[np.float64], **more: NDArray[Any]
) -> Table:
    n, s, distinct, shannon, minimum, close = found
    return _table(word=names, N_w=n, N_w_low=n, N_w_high=n, support=s.astype(np.uint32),
                 S_w=distinct, **more, shannon=shannon, min_entropy=minimum,
                 hartley=np.full(len(n), np.log2(count)), near=close)  # fmt: skip


def statistics_at(
    mechanism: Mechanism, epsilons: Sequence[float], words: Iterable[str] | None, draws: int
) -> Iterator[Table]:
    """Yield `statistics` at several ε, without inputs and `near`; distances are computed once."""
    ids = measured_ids(mechanism, words)
    names = np.array(mechanism.space.words, dtype=object)[ids]
    if not mechanism.has_law:
        for epsilon in epsilons:
            yield statistics(mechanism.with_epsilon(epsilon), names, draws)
        return
    for found in closed_forms(mechanism, ids, 0.05, 0, draws, epsilons):
        yield _exact(names, len(mechanism.space), found)


def spread(mechanism: Mechanism, most: int = SAMPLE) -> NDArray[np.uint32]:
    """Return the ids of so many words at most, spread over the vocabulary."""
    count = len(mechanism.space)
    return np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.uint32))
