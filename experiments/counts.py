"""Words counted from private reviews, by outputs as they are and by `fastdx.counts`.

The threshold, written down before anything was run: at every ε at which an output tells at least
half a bit of its word, the error of the estimated frequencies is at most half of that of raw
counts, in total variation from the frequencies of the words that were written.

Beside every figure stands that of a public model of English alone (`NgramPrior.english`), which
sees no release.
"""

from __future__ import annotations

from itertools import chain
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
                             seed=SEED, oov="mask", certify=False)  # fmt: skip
        k = None if self.kind == "Tem" else 20
        return tem(space, self.epsilon, k, seed=SEED, oov="mask")


POLICIES = (Policy("Tem", 2.0), Policy("Tem", 2.66), Policy("Tem", 3.0), Policy("Tem", 4.0),
            Policy("balanced cover of 20", 4.0), Policy("randomised response", 6.0))  # fmt: skip


def _found(source: Source, policy: Policy, size: int, most: int) -> dict[str, float]:
    space = builtin(size)
    # Words that the vocabulary lacks are left out.
    reviews = [[w for w in tokenize(text.lower()) if w in space]
               for text in source.texts("imdb", "train").some(most).texts]  # fmt: skip
    mechanism = policy.mechanism(space)
    channel = Channel.of(mechanism)
    estimator = Estimator(channel).add(mechanism.privatize([*map(" ".join, reviews)]))
    true = np.bincount(space.ids([*chain(*reviews)]), minlength=len(space))
    true = true / true.sum()
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
        f = run.ask(_found, policy, size, most)
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


TABLES: dict[str, Experiment] = {"frequencies": frequencies}
