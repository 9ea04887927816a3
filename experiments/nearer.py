"""Attempts to come nearer to the limit under a computed ε, at equal bits.

Every law is K[w, y] ∝ q_y·e^(-η·s(w, y)). Scores that change by at most d(w, w') between two words
keep ε = 2η: the distance to the output, to a set, or to any fixed point, and Huber's function of
it, with any public weights q. The square of the distance has no such ε in advance; what it costs on
these words is computed for all laws alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import rel_entr, softmax

from experiments.data import builtin
from experiments.measures import Numbers, by_rank, cover, narrowed
from experiments.tables import Experiment, Run, Table
from fastdx.lab.laws import largest_loss
from fastdx.lab.limit import vector_rate_distortion

WORDS = 600
BITS = (1.0, 2.0, 3.0)
ROUNDS = 40


def _law(scores: Numbers, logs: Numbers) -> Numbers:
    return softmax(logs - scores, axis=1)


class _Words:
    """Words, how often they are written, and what a law on them is worth."""

    def __init__(self, count: int) -> None:
        self.e, self.prior = builtin(count), by_rank(count)
        self.v = self.e.vectors.astype(np.float64)
        self.v -= self.prior @ self.v
        self.d = cdist(self.v, self.v)
        self.variance = float(self.prior @ (self.v**2).sum(axis=1))

    def bits(self, law: Numbers) -> float:
        return float(self.prior @ rel_entr(law, self.prior @ law).sum(axis=1) / np.log(2))

    def explained(self, law: Numbers) -> float:
        outputs = self.prior @ law
        sums = law.T @ (self.prior[:, None] * self.v)
        kept = outputs > 0
        return float(((sums[kept] ** 2).sum(axis=1) / outputs[kept]).sum() / self.variance)

    def learned(self, scores: Numbers) -> Numbers:
        """The law whose weights are how often its outputs come: Blahut and Arimoto."""
        logs = np.zeros(scores.shape[1])
        for _ in range(ROUNDS):
            logs = np.log(np.maximum(self.prior @ _law(scores, logs), 1e-12))
        return _law(scores, logs)

    def moved(self, eta: float, score: Callable[[Numbers], Numbers]) -> Numbers:
        """Outputs stand for points: each the mean of the words behind it, in turn with weights."""
        points, logs = self.v.copy(), np.log(self.prior)
        for _ in range(ROUNDS):
            law = _law(eta * score(cdist(self.v, points)), logs)
            outputs = np.maximum(self.prior @ law, 1e-12)
            points = law.T @ (self.prior[:, None] * self.v) / outputs[:, None]
            logs = np.log(outputs)
        return _law(eta * score(cdist(self.v, points)), logs)


def _huber(d: Numbers) -> Numbers:
    return np.asarray(np.sqrt(d**2 + 9.0) - 3.0)


def _sets(words: _Words, k: int) -> Numbers:
    sets = map(cover(words.e, k).sets, words.e.words)
    return np.array([words.d[:, words.e.ids(behind)].min(axis=1) for behind in sets]).T


LAWS: dict[str, Callable[[_Words], Callable[[float], Numbers]]] = {
    "Tem": lambda w: lambda eta: _law(eta * w.d, np.zeros(len(w.d))),
    "balanced cover, k = 20": lambda w: partial(_of_sets, _sets(w, 20), None),
    "balanced cover, k = 5": lambda w: partial(_of_sets, _sets(w, 5), None),
    "Tem, weights by frequency": lambda w: lambda eta: _law(eta * w.d, np.log(w.prior)),
    "Tem, weights learned": lambda w: lambda eta: w.learned(eta * w.d),
    "balanced cover, k = 20, weights learned": lambda w: partial(_of_sets, _sets(w, 20), w),
    "points and weights learned": lambda w: lambda eta: w.moved(eta, np.asarray),
    "points and weights learned, Huber's score": lambda w: lambda eta: w.moved(eta, _huber),
    "points and weights learned, squared score": lambda w: lambda eta: w.moved(eta, np.square),
}  # fmt: skip


def _of_sets(scores: Numbers, words: _Words | None, eta: float) -> Numbers:
    if words is None:
        return _law(eta * scores, np.zeros(scores.shape[1]))
    return words.learned(eta * scores)


def _tried(name: str, bits: float, count: int) -> tuple[float, ...] | None:
    """ε computed, bits and explained variance of a law at so many bits."""
    words = _Words(count)
    make = LAWS[name](words)
    most = 60.0
    if words.bits(make(most)) < bits:
        return None
    law = make(narrowed(lambda eta: words.bits(make(eta)) < bits, 0.1, most, 1.02)[0])
    return largest_loss(law, words.d), words.bits(law), words.explained(law)


def _most(count: int) -> list[list[float]]:
    words = _Words(count)
    curve = vector_rate_distortion(words.v, words.prior, slopes=16)
    return [curve.lower.tolist(), (curve.slopes * words.variance).tolist()]


def tried(run: Run) -> Table:
    """All of them."""
    count = run.of(WORDS, 100)
    lower, slopes = (np.array(x) for x in run.step(partial(_most, count), "most", count))
    table = Table(
        f"Explained variance at equal bits, built in, {count:,} words (ε computed, per distance)",
        ["law", *(f"{bits:g} bit{'s' * (bits > 1)}" for bits in BITS)],
    )
    for name in LAWS:
        cells = []
        for bits in BITS:
            make = partial(_tried, name, bits, count)
            found = run.step(make, name, bits, count)
            cells.append(f"{found[2]:.3f} ({found[0]:.2f})" if found else "–")
        table.add(name, *cells)
    best = [1 - max(float(((lower - bits) / slopes).max()), 0.0) for bits in BITS]
    table.add("no mechanism has more", *(f"{x:.3f}" for x in best))
    return table


TABLES: dict[str, Experiment] = {"tried": tried}
