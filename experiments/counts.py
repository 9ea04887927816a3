"""Words counted from private reviews, by outputs as they are and by `fastdx.counts`.

The threshold, written down before anything was run: at every ε at which an output tells at least
half a bit of its word, the error of the estimated frequencies is at most half of that of raw
counts, in total variation from the frequencies of the words that were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.data import Source
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Cover, Embedding, FiniteLaw, Mechanism, Tem, laws, tokenize
from fastdx.channel import Channel
from fastdx.counts import Estimator

SIZE = 6000
"""Words of the vocabulary: the first of the built-in ones."""
BITS = 0.5
LEAST_GAIN = 2.0
FREQUENT = 100
TESTED = (
    "bad", "worst", "waste", "boring", "awful", "stupid", "terrible", "great", "excellent",
    "wonderful", "best", "love", "perfect", "beautiful", "film", "actor", "music", "scene",
)  # fmt: skip
"""Words that reviews of the two groups may write differently often, and some that may not."""


class Policy(NamedTuple):
    """A mechanism by its ε."""

    kind: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.kind}, ε = {self.epsilon:g}"

    def mechanism(self, size: int) -> Mechanism:
        space = _space(size)
        if self.kind == "randomised response":
            # Its law on so many words is the same for every word but its own.
            return FiniteLaw(space, laws.randomized_response(space, self.epsilon).matrix(),
                             seed=SEED, oov="mask", certified=False)  # fmt: skip
        if self.kind == "Tem":
            return Tem(space, self.epsilon, seed=SEED, oov="mask")
        return Tem(space, self.epsilon, cover=_cover(size), seed=SEED, oov="mask")


POLICIES = (Policy("Tem", 2.0), Policy("Tem", 2.66), Policy("Tem", 3.0), Policy("Tem", 4.0),
            Policy("balanced cover of 20", 4.0), Policy("randomised response", 6.0))  # fmt: skip


@cache
def _space(size: int) -> Embedding:
    e = Embedding.default()
    return Embedding(e.words[:size], e.vectors[:size])


@cache
def _cover(size: int) -> Cover:
    return Cover.balanced(_space(size), 20)


@cache
def _reviews(source: Source, size: int, most: int) -> tuple[list[str], list[str]]:
    """Reviews without the words that the vocabulary does not have, and their labels."""
    found = source.imdb("train").some(most)
    words = set(_space(size).words)
    kept = [[w for w in tokenize(text.lower()) if w in words] for text in found.texts]
    return [" ".join(review) for review in kept], found.labels


def _written(texts: Sequence[str], size: int) -> Any:
    """How often each word is written."""
    place = {word: i for i, word in enumerate(_space(size).words)}
    ids = [place[word] for text in texts for word in text.split()]
    counts = np.bincount(ids, minlength=size)
    return counts / counts.sum()


def _found(source: Source, policy: Policy, size: int, most: int) -> dict[str, float]:
    texts = _reviews(source, size, most)[0]
    mechanism = policy.mechanism(size)
    channel = Channel.of(mechanism)
    estimator = Estimator(channel).add(mechanism.privatize(texts))
    true = _written(texts, size)
    raw = estimator.outputs() / estimator.outputs().sum()
    made = estimator.distribution()
    frequent = set(np.argsort(-true, kind="stable")[:FREQUENT].tolist())

    def named(frequencies: Any) -> float:
        top = np.argsort(-frequencies, kind="stable")[:FREQUENT]
        return len(frequent & set(top.tolist())) / FREQUENT

    start = 1 / (np.arange(size) + 3.7)
    return {
        "bits": float(channel.bits()), "raw": float(np.abs(raw - true).sum() / 2),
        "counts": float(np.abs(made.frequencies - true).sum() / 2),
        "start": float(np.abs(start / start.sum() - true).sum() / 2),
        "raw top": named(raw), "counts top": named(made.frequencies), "rounds": made.rounds,
        "words": estimator.words,
    }  # fmt: skip


def frequencies(run: Run) -> Table:
    """Total variation from the words that were written."""
    size, most = run.of(SIZE, 1000), run.of(20_000, 1500)
    table = Table(
        f"Words counted from private reviews, {size:,} words",
        ["mechanism", "bits a word", "error of raw counts", "of the estimate",
         "most frequent hundred: raw", "estimate", "rounds"],
    )  # fmt: skip
    failed, words, start = [], 0.0, 0.0
    for policy in POLICIES:
        f = run.step(partial(_found, run.data, policy, size, most), *policy, size, most)
        table.add(str(policy), f"{f['bits']:.2f}", f"{f['raw']:.3f}", f"{f['counts']:.3f}",
                  f"{f['raw top']:.2f}", f"{f['counts top']:.2f}",
                  f"{f['rounds']:.0f}")  # fmt: skip
        words, start = f["words"], f["start"]
        if f["bits"] >= BITS and LEAST_GAIN * f["counts"] > f["raw"]:
            failed.append(str(policy))
    held = "holds in every row" if not failed else f"fails for {'; '.join(failed)}"
    table.notes.append(
        f"{words:,.0f} words of film reviews (IMDB) that the vocabulary has. Errors in total "
        f"variation; the public start, 1/(rank + 2.7), is at {start:.3f}. The threshold, at most "
        f"half the error of raw counts where there are {BITS} bits: {held}."
    )
    return table


def _groups(
    source: Source, policy: Policy, size: int, most: int, asked: list[str]
) -> list[list[float]]:
    """For every word: its true difference, the estimate, its ends, p, whether it was found."""
    texts, labels = _reviews(source, size, most)
    mechanism = policy.mechanism(size)
    channel = Channel.of(mechanism)
    private = mechanism.privatize(texts)
    names = sorted(set(labels))
    groups, true = [], []
    for name in names[:2]:
        at = [i for i, label in enumerate(labels) if label == name]
        groups.append(Estimator(channel).add([private[i] for i in at]))
        true.append(_written([texts[i] for i in at], size))
    found = {d.word: d for d in groups[1].compare(groups[0], asked)}
    ids = mechanism.space.ids(asked)
    return [[float(true[1][i] - true[0][i]), d.value, d.low, d.high, d.p_value, float(d.differs)]
            for word, i in zip(asked, ids, strict=True) for d in [found[word]]]  # fmt: skip


def reviews(run: Run) -> Table:
    """Two groups of reviews: which words differ."""
    size, most = run.of(SIZE, 1000), run.of(20_000, 1500)
    table = Table(
        f"Good reviews less bad ones, shares of words in ten thousand, {size:,} words",
        ["word", "true", *(str(p) for p in _COMPARED)],
    )
    asked = [word for word in run.of(TESTED, TESTED[::2]) if word in _space(size)]
    every = [run.step(partial(_groups, run.data, policy, size, most, asked), "groups", *policy,
                      size, most) for policy in _COMPARED]  # fmt: skip
    for at, word in enumerate(asked):
        cells = [f"{1e4 * f[at][1]:+.1f} ({1e4 * f[at][2]:+.1f} to {1e4 * f[at][3]:+.1f})"
                 + " **differs**" * bool(f[at][5]) for f in every]  # fmt: skip
        table.add(word, f"{1e4 * every[0][at][0]:+.1f}", *cells)
    table.notes.append(
        "`Estimator.compare`: intervals of 95% that include the bias. **differs**: a discovery of "
        "which at most 5% are false in expectation (Benjamini and Yekutieli)."
    )
    return table


_COMPARED = (Policy("Tem", 4.0), Policy("Tem", 6.0))

TABLES: dict[str, Experiment] = {"frequencies": frequencies, "reviews": reviews}
