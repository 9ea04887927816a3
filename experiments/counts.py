"""Words counted from private reviews, by outputs as they are and by `fastdx.counts`.

The threshold, written down before anything was run: at every ε at which an output tells at least
half a bit of its word, the error of the estimated frequencies is at most half of that of raw
counts, in total variation from the frequencies of the words that were written.

Beside every figure stands that of a public model of English alone (`NgramPrior.english`), which
sees no release.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.data import Source, builtin
from experiments.measures import by_rank, tem
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, FiniteLaw, Mechanism, tokenize
from fastdx.channel import Channel, NgramPrior
from fastdx.counts import Estimator
from fastdx.lab import laws

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


APART = 0.1
"""How far apart the frequencies of two groups are taken to be at most, where that is assumed."""


class Policy(NamedTuple):
    """A mechanism by its ε."""

    kind: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.kind}, ε = {self.epsilon:g}"

    def mechanism(self, space: Embedding) -> Mechanism:
        if self.kind == "randomised response":
            # Its law on so many words is the same for every word but its own.
            return FiniteLaw(space, laws.randomized_response(space, self.epsilon).matrix(),
                             seed=SEED, oov="mask", certified=False)  # fmt: skip
        k = None if self.kind == "Tem" else 20
        return tem(space, self.epsilon, k, seed=SEED, oov="mask")


POLICIES = (Policy("Tem", 2.0), Policy("Tem", 2.66), Policy("Tem", 3.0), Policy("Tem", 4.0),
            Policy("balanced cover of 20", 4.0), Policy("randomised response", 6.0))  # fmt: skip


@cache
def _reviews(source: Source, space: Embedding, most: int) -> tuple[list[str], list[str]]:
    """Reviews without the words that the vocabulary does not have, and their labels."""
    found = source.imdb("train").some(most)
    words = set(space.words)
    kept = [[w for w in tokenize(text.lower()) if w in words] for text in found.texts]
    return [" ".join(review) for review in kept], found.labels


def _written(texts: Sequence[str], space: Embedding) -> Any:
    """How often each word is written."""
    ids = space.ids([word for text in texts for word in text.split()])
    counts = np.bincount(ids, minlength=len(space))
    return counts / counts.sum()


def _found(source: Source, policy: Policy, size: int, most: int) -> dict[str, float]:
    space = builtin(size)
    texts = _reviews(source, space, most)[0]
    mechanism = policy.mechanism(space)
    channel = Channel.of(mechanism)
    estimator = Estimator(channel).add(mechanism.privatize(texts))
    true = _written(texts, space)
    raw = estimator.outputs() / estimator.outputs().sum()
    made = estimator.distribution()
    frequent = set(np.argsort(-true, kind="stable")[:FREQUENT].tolist())

    def named(frequencies: Any) -> float:
        top = np.argsort(-frequencies, kind="stable")[:FREQUENT]
        return len(frequent & set(top.tolist())) / FREQUENT

    def error(frequencies: Any) -> float:
        return float(np.abs(frequencies - true).sum() / 2)

    model = NgramPrior.english(space).frequencies
    return {
        "bits": float(channel.bits()), "raw": error(raw), "counts": error(made.frequencies),
        "start": error(by_rank(len(space))), "model": error(model), "raw top": named(raw),
        "counts top": named(made.frequencies), "model top": named(model), "rounds": made.rounds,
        "words": estimator.words,
    }  # fmt: skip


def frequencies(run: Run) -> Table:
    """Total variation from the words that were written, and whether the threshold was reached."""
    size, most = run.of(SIZE, 400), run.of(20_000, 500)
    table = Table(f"Words counted from private reviews, {size:,} words", [
        "mechanism", "bits a word", "error of raw counts", "of the estimate",
        "of the language model alone, no release", "most frequent hundred: raw", "estimate",
        "language model alone", "rounds"])  # fmt: skip
    failed, worse = [], []
    for policy in POLICIES:
        f = run.step(partial(_found, run.data, policy, size, most), *policy, size, most)
        table.add(policy, f"{f['bits']:.2f}", f"{f['raw']:.3f}", f"{f['counts']:.3f}",
                  f"{f['model']:.3f}", f"{f['raw top']:.2f}", f"{f['counts top']:.2f}",
                  f"{f['model top']:.2f}", f"{f['rounds']:.0f}")  # fmt: skip
        failed += [str(policy)] * (f["bits"] >= BITS and LEAST_GAIN * f["counts"] > f["raw"])
        worse += [str(policy)] * (f["counts"] >= f["model"])
    held = "holds in every row" if not failed else f"fails for {'; '.join(failed)}"
    table.notes.append(
        f"{f['words']:,.0f} words of film reviews (IMDB) that the vocabulary has. Errors in "
        f"total variation; the public start, 1/(rank + 2.7), is at {f['start']:.3f}. The "
        f"threshold, at most half the error of raw counts where there are {BITS} bits: {held}."
    )
    if worse:
        table.notes.append(f"No nearer than the language model alone: {'; '.join(worse)}.")
    return table


def _groups(
    source: Source, policy: Policy, sizes: tuple[int, int], asked: list[str], apart: float
) -> list[list[float]]:
    """For every word: its true difference, the estimate, its ends, p, whether it was found.

    Last, in a row of its own, how far the frequencies of the groups are apart.
    """
    space = builtin(sizes[0])
    texts, labels = _reviews(source, space, sizes[1])
    mechanism = policy.mechanism(space)
    channel = Channel.of(mechanism)
    private = mechanism.privatize(texts)
    names = sorted(set(labels))
    groups, true = [], []
    for name in names[:2]:
        at = [i for i, label in enumerate(labels) if label == name]
        groups.append(Estimator(channel).add([private[i] for i in at]))
        true.append(_written([texts[i] for i in at], space))
    found = {d.word: d for d in groups[1].compare(groups[0], asked, apart=apart)}
    ids = mechanism.space.ids(asked)
    rows = [[float(true[1][i] - true[0][i]), d.value, d.low, d.high, d.p_value, float(d.differs)]
            for word, i in zip(asked, ids, strict=True) for d in [found[word]]]  # fmt: skip
    return [*rows, [float(np.abs(true[1] - true[0]).sum() / 2)]]


def reviews(run: Run, apart: float = 1.0) -> Table:
    """Two groups of reviews: which words differ."""
    size, most = run.of(SIZE, 400), run.of(20_000, 500)
    table = Table(
        f"Good reviews less bad ones, shares of words in ten thousand, {size:,} words",
        ["word", "true", *(str(p) for p in _COMPARED)],
    )
    asked = [word for word in run.of(TESTED, TESTED[::2]) if word in builtin(size)]
    every = [run.step(partial(_groups, run.data, policy, (size, most), asked, apart), "groups",
                      *policy, size, most, apart) for policy in _COMPARED]  # fmt: skip
    held = [sum(f[at][2] <= every[0][at][0] <= f[at][3] for at in range(len(asked)))
            for f in every]  # fmt: skip
    for at, word in enumerate(asked):
        cells = [f"{1e4 * f[at][1]:+.1f} ({1e4 * f[at][2]:+.1f} to {1e4 * f[at][3]:+.1f})"
                 + " **differs**" * bool(f[at][5]) for f in every]  # fmt: skip
        table.add(word, f"{1e4 * every[0][at][0]:+.1f}", *cells)
    assumed = "nothing is assumed" if apart == 1 else f"`apart={apart:g}` is assumed"
    table.notes.append(
        f"`Estimator.compare`: intervals of 95% that include the bias; {assumed}, and the groups "
        f"are {every[0][-1][0]:.3f} apart. **differs**: a discovery of which at most 5% are false "
        "in expectation (Benjamini and Yekutieli). The interval holds the true difference of "
        + " and ".join(
            f"{n} of {len(asked)} words ({p})" for n, p in zip(held, _COMPARED, strict=True)
        )
        + f". {len(_reviews(run.data, builtin(size), most)[0]):,} reviews. A language model alone, "
        "without a release, knows of no difference."
    )
    return table


_COMPARED = (Policy("Tem", 4.0), Policy("Tem", 6.0))

TABLES: dict[str, Experiment] = {
    "frequencies": frequencies,
    "reviews": reviews,
    "near": partial(reviews, apart=APART),
}
