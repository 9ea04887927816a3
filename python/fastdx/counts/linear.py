"""Linear estimators of a share: a score for every output, and the exact bound of their bias.

The mean score of n outputs estimates Σ_w x_w·(Kg)_w, where x are the frequencies of words. Its bias
as an estimate of Σ_w x_w·f_w is a mean of (Kg)_w - f_w, so at most max_w |(Kg)_w - f_w|, whatever
the texts say. Any g may be taken: the bound is computed for the one that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastdx.channel import Channel

_Numbers = NDArray[np.float64]
_Ids = NDArray[np.int64]

MOST_OUTPUTS = 512
"""Outputs that have a score of their own at most; all others share one. All have one in spaces of
no more words."""
ROWS = 2048
"""Words that a fit looks at; the bound looks at all."""
PENALTIES = 10.0 ** np.array([-13, -8, -5, -3, -2, -1, 0, 1])
"""How much variance counts beside squared bias, as a part of what they are at a start."""
ROUNDS = 3
"""How often words whose bias is large are given more weight."""


@dataclass(frozen=True)
class Rule:
    """A score of every output, and what its mean is worth."""

    scores: _Numbers
    """The score of every output, shape (V,)."""
    bias: float
    """max_w |(Kg)_w - f_w| over all words, and unknown ones where outputs hide them."""
    deviation: float
    """The standard deviation of a score under the public frequencies."""


def rule_for(
    channel: Channel,
    wanted: _Numbers,
    *,
    prior: _Numbers,
    unknown: float,
    cost: Callable[[Rule], float],
) -> Rule:
    """Choose the scores that cost least.

    Ridge regressions of the wanted counts on the columns of the law: large residuals get more
    weight from round to round (Lawson 1961), which turns the least squares towards the least
    maximum; penalties on the variance go over a grid. The best of all scores seen are taken.
    Nothing depends on the released texts, and the bound not on the public frequencies of words and
    of unknown ones, which say how much a score varies.
    """
    core, target, written = channel._core, wanted, prior
    # Unknown words have the last row, where outputs hide them.
    hidden = core.unknown_law() if channel.mechanism.oov == "random" else None
    if hidden is not None:
        target, written = np.append(wanted, 0.0), np.append(prior * (1 - unknown), unknown)
    outputs = _first_outputs(wanted, prior)
    best, least, worst = Rule(np.zeros(len(wanted)), math.inf, 0.0), math.inf, -target
    while True:
        table = core.columns(outputs).T
        if hidden is not None:
            table = np.vstack([table, hidden[outputs]])
        seen = written @ table
        for scores, residuals in _fits(table, target, seen):
            low, high = float(residuals.min()), float(residuals.max())
            # A constant moves the mean of all scores: the bias is the same on both sides.
            middle = (low + high) / 2
            full = np.full(len(wanted), -middle)
            full[outputs] += scores
            mean = float(seen @ scores)
            spread = float(seen @ scores**2) - mean**2
            rule = Rule(full, (high - low) / 2, math.sqrt(max(spread, 0.0)))
            paid = cost(rule)
            if (paid, rule.bias) < (least, best.bias):  # bias where all cost inf
                best, least, worst = rule, paid, residuals
        if len(outputs) >= min(MOST_OUTPUTS, len(wanted)):
            return best
        outputs = _more_outputs(outputs, worst, len(wanted))


def _first_outputs(wanted: _Numbers, prior: _Numbers) -> _Ids:
    """Return the outputs to begin with: all of a small space, else the words that count."""
    if len(wanted) <= MOST_OUTPUTS:
        return np.arange(len(wanted))
    counted = np.flatnonzero(wanted)
    commonest = np.argsort(-prior[counted], kind="stable")[: MOST_OUTPUTS // 2]
    return np.sort(counted[commonest])


def _more_outputs(outputs: _Ids, residuals: _Numbers, words: int) -> _Ids:
    """Add the outputs of the words whose bias is largest: each word's own."""
    error = np.abs(residuals[:words] - np.median(residuals))
    error[outputs] = -1.0
    more = np.argsort(-error, kind="stable")[: min(MOST_OUTPUTS // 2, MOST_OUTPUTS - len(outputs))]
    return np.sort(np.concatenate([outputs, more]))


def _fits(table: _Numbers, target: _Numbers, seen: _Numbers) -> Iterator[tuple[_Numbers, _Numbers]]:
    """Yield scores of the columns, and what is left of the target: (Kg)_w - f_w of every row."""
    size = table.shape[1]
    yield np.zeros(size), -target
    base = float((table**2).sum()) / size
    for penalty in PENALTIES:
        weights = np.where(target != 0, 1 / np.count_nonzero(target), 1 / len(target))
        ridge = np.diag(penalty * base * (seen / seen.mean() + 1e-9) / len(target))
        for _ in range(ROUNDS):
            rows = np.argsort(-weights, kind="stable")[:ROWS]
            some = np.column_stack([table[rows], np.ones(len(rows))])
            heavy = some * weights[rows, None]
            gram = heavy.T @ some
            gram[:size, :size] += ridge
            gram[np.diag_indices(size + 1)] += 1e-14 * np.trace(gram)
            try:
                found = np.linalg.solve(gram, heavy.T @ target[rows])
            except np.linalg.LinAlgError:
                break
            scores = found[:size]
            residuals = table @ scores - target
            yield scores, residuals
            centre = (residuals.max() + residuals.min()) / 2
            error = np.abs(residuals - centre)
            weights = weights * (error + 1e-3 * error.max())
            weights /= weights.sum()
