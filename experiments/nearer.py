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
from numpy.typing import NDArray

from experiments.data import Source
from experiments.tables import Experiment, Run, Table
from fastdx import Cover, Embedding
from fastdx.channel import vector_rate_distortion
from fastdx.lab.laws import largest_loss

WORDS = 600
BITS = (1.0, 2.0, 3.0)
ROUNDS = 40

Numbers = NDArray[np.float64]


def _apart(a: Numbers, b: Numbers) -> Numbers:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    found: Numbers = np.sqrt(np.maximum(squares, 0))
    return found


def _law(scores: Numbers, logs: Numbers) -> Numbers:
    weights = -scores + logs
    weights -= weights.max(axis=1, keepdims=True)
    np.exp(weights, out=weights)
    found: Numbers = weights / weights.sum(axis=1, keepdims=True)
    return found


class _Words:
    """Words, how often they are written, and what a law on them is worth."""

    def __init__(self, count: int) -> None:
        default = Embedding.default()
        self.e = Embedding(default.words[:count], default.vectors[:count])
        self.prior = 1 / (np.arange(count) + 3.7)
        self.prior /= self.prior.sum()
        self.v = self.e.vectors.astype(np.float64)
        self.v -= self.prior @ self.v
        self.d = _apart(self.v, self.v)
        np.fill_diagonal(self.d, 0)
        self.variance = float(self.prior @ (self.v**2).sum(axis=1))

    def bits(self, law: Numbers) -> float:
        outputs = self.prior @ law
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(law > 0, law * np.log2(law / outputs), 0)
        return float(self.prior @ logs.sum(axis=1))

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
            law = _law(eta * score(_apart(self.v, points)), logs)
            outputs = np.maximum(self.prior @ law, 1e-12)
            points = law.T @ (self.prior[:, None] * self.v) / outputs[:, None]
            logs = np.log(outputs)
        return _law(eta * score(_apart(self.v, points)), logs)


def _huber(d: Numbers) -> Numbers:
    return np.asarray(np.sqrt(d**2 + 9.0) - 3.0)


def _sets(words: _Words, k: int) -> Numbers:
    cover = Cover.balanced(words.e, k)
    places = {word: i for i, word in enumerate(words.e.words)}
    columns = [words.d[:, [places[w] for w in cover.sets(y)]].min(axis=1) for y in words.e.words]
    return np.array(columns).T


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


def _tried(source: Source, name: str, bits: float, count: int) -> tuple[float, ...] | None:
    """ε computed, bits and explained variance of a law at so many bits."""
    words = _Words(count)
    make = LAWS[name](words)
    low, high = 0.1, 60.0
    if words.bits(make(high)) < bits:
        return None
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if words.bits(make(middle)) < bits else (low, middle)
    law = make(low)
    return largest_loss(law, words.d), words.bits(law), words.explained(law)


def _most(source: Source, count: int) -> list[list[float]]:
    words = _Words(count)
    curve = vector_rate_distortion(words.v, words.prior, slopes=16)
    return [curve.lower.tolist(), (curve.slopes * words.variance).tolist()]


def tried(run: Run) -> Table:
    """All of them."""
    count = run.of(WORDS, 100)
    lower, slopes = (np.array(x) for x in run.step(partial(_most, run.data, count), "most", count))
    table = Table(
        f"Explained variance at equal bits, built in, {count:,} words (ε computed, per distance)",
        ["law", *(f"{bits:g} bit{'s' * (bits > 1)}" for bits in BITS)],
    )
    for name in LAWS:
        cells = []
        for bits in BITS:
            make = partial(_tried, run.data, name, bits, count)
            found = run.step(make, name, bits, count)
            cells.append(f"{found[2]:.3f} ({found[0]:.2f})" if found else "–")
        table.add(name, *cells)
    best = [1 - max(float(((lower - bits) / slopes).max()), 0.0) for bits in BITS]
    table.add("no mechanism has more", *(f"{x:.3f}" for x in best))
    return table


TABLES: dict[str, Experiment] = {"tried": tried}
