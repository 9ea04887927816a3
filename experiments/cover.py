"""Compares Tem, covers, the staircase and noise: words an attacker names, and similarity.

    python -m experiments.cover [--words 6000] [--epsilon 2.4 2.6] [--texts 150] [--small]
        [--plot FILE.svg]

Two embeddings, each judged by the other: MiniLM and GloVe in 50 dimensions, the most frequent
words that both have; movie reviews (IMDB). The attacker knows the mechanism, the words'
frequencies and a bigram model of 8,000 other reviews; *named in sentences* is the share of the
content words of unseen reviews that he names by the likeliest word given the whole release, exactly
where there is a law. *Bits a word*: the mutual information of a word and its output, all words
being alike. *Similarity* is the mean cosine of a content word and its replacement in the other
embedding, unchanged words included; *chance* that of pairs put together by chance. ε is certified
on the vocabulary for Tem (per unit of Euclidean distance) and holds for any two words for the
staircase; noise has no certificate. R, R@10, R@100: the probability that 1, 10 or 100 guesses
hold the word, all words being alike; near loss: the mean over 200 words of the largest log-ratio
of an output to any of a word's 20 nearest words. *Sets of 300d*: a cover whose sets come from
MiniLM in 300 dimensions, while distances are those in 50; *q*: outputs weighted by √frequency.
Draws are random: the last digit of attack and similarity differs from run to run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import Shared
from fastdx import Cover, Embedding, Mechanism, MultivariateLaplace, NeighborResponse, Tem
from fastdx.calibration import Table
from fastdx.channel import NgramPrior
from fastdx.lab import plots
from fastdx.lab.comparison import frontier


def embeddings(source: Shared, words: int) -> tuple[Embedding, Embedding]:
    """The same words in both embeddings, most frequent first."""
    minilm, glove = source.minilm(50), source.glove()
    known = set(glove.words)
    both = [word for word in minilm.words if word in known][: words or None]
    return tuple(Embedding(both, e.vectors[e.ids(both)]) for e in (minilm, glove))


def rich(source: Shared, e: Embedding) -> Embedding:
    """The same words in MiniLM's 300 dimensions."""
    richer = source.minilm(300)
    return Embedding(e.words, richer.vectors[richer.ids(e.words)])


def other_covers(
    e: Embedding, richer: Embedding | None, model: NgramPrior
) -> Iterator[tuple[str, Cover]]:
    """Covers that might be better: sets by another model, weights."""
    cover = Cover.balanced(e, 40, frequencies=model.frequencies)
    yield "q", cover.weighted(np.sqrt(model.frequencies))
    if richer is not None:
        # The proof does not ask where the sets come from.
        better = Cover.balanced(richer, 40, frequencies=model.frequencies)
        yield "sets of 300d", Cover.from_sets(e, {w: better.sets(w) for w in e.words})


def mechanisms(
    e: Embedding, richer: Embedding | None, model: NgramPrior, epsilons: list[float], small: bool
) -> Iterator[tuple[str, Mechanism]]:
    # Tem at smaller ε too, where its replacements are about as similar as a cover's.
    for epsilon in [0.75 * epsilons[0], 0.9 * epsilons[0], *epsilons]:
        yield "Tem", Tem.certified(e, epsilon)
    for k in (20, 40) if small else (5, 10, 20, 40, 80, 160):
        cover = Cover.nearest(e, k)
        for epsilon in epsilons:
            yield f"cover k={k}", Tem.certified(e, epsilon, cover=cover)
    for k, weight in [(40, 0.1)] if small else [(20, 0.05), (40, 0.05), (40, 0.1), (40, 0.2)]:
        cover = Cover.balanced(e, k, frequencies=model.frequencies, weight=weight)
        for epsilon in epsilons:
            yield f"balanced k={k}, a={weight}", Tem.certified(e, epsilon, cover=cover)
        if weight == 0.1:
            for epsilon in (7.0,) if small else (6.0, 7.0, 8.0):
                yield f"staircase, balanced k={k}", NeighborResponse(e, epsilon, cover=cover)
    if not small:
        for name, cover in other_covers(e, richer, model):
            for epsilon in epsilons:
                yield f"balanced k=40, {name}", Tem.certified(e, epsilon, cover=cover)
    for epsilon in (7.0,) if small else (6.0, 7.0, 8.0):
        yield "staircase k=40", NeighborResponse(e, epsilon, cover=40)
    yield "Tem, remap=5", Tem(e, Tem.certified(e, epsilons[-1]).nominal, remap=5)
    # MADLIB at its usual ε: its proof is per unit of distance too, with no certificate.
    for factor in (4.0,) if small else (3.0, 4.0, 5.0):
        yield "MADLIB", MultivariateLaplace(e, factor * epsilons[-1])


PLOTTED = ("Tem", "cover k=10", "cover k=40", "balanced k=40, a=0.1", "staircase, balanced k=40",
           "MADLIB")  # fmt: skip
"""The rows that a picture shows: more than six lines cannot be told apart."""


def plot(rows: np.ndarray, path: Path) -> Any:
    from matplotlib import pyplot

    rows = rows[np.isin(rows["name"].astype(str), PLOTTED)]
    table = Table(**{name: rows[name] for name in rows.dtype.names})
    axes = plots.frontier(table, axes=pyplot.subplots(figsize=(8, 6))[1])
    axes.figure.savefig(path)
    return axes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=6000, help="0: all that both have")
    parser.add_argument("--texts", type=int, default=150)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[2.4, 2.6])
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="needs matplotlib")
    parser.add_argument("--small", action="store_true", help="fewer mechanisms")
    args = parser.parse_args()
    source = Shared()
    known = source.imdb("train").texts[:8000]
    unseen = [t[:600] for t in source.imdb("test").texts[: args.texts]]
    minilm, glove = embeddings(source, args.words)
    for name, e, judge in (("MiniLM", minilm, glove), ("GloVe", glove, minilm)):
        model = NgramPrior.train(e, known)
        richer = rich(source, e) if name == "MiniLM" else None
        tables: list[np.ndarray] = []
        print(f"\n{name} 50d, {len(e):,} words, judged by the other; {len(unseen)} reviews\n")
        print("| mechanism | ε | bits a word | named in sentences | similarity (chance) | "
              "unchanged | R | R@10 | R@100 | worst posterior | near loss |\n|"
              + "---|" * 11)  # fmt: skip
        for shown, m in mechanisms(e, richer, model, args.epsilon, args.small):
            table = frontier({shown: m}, judge=judge, texts=unseen, model=model)
            (row,) = table
            tables.append(table.array)
            posterior, near, bits = (
                "–" if np.isnan(row[name]) else f"{row[name]:.2f}"
                for name in ("worst_posterior", "near_loss", "bits")
            )
            print(f"| {shown} | {row['epsilon']:.2f} | {bits} | {row['sentence']:.3f} | "
                  f"{row['similarity']:.3f} ({row['chance']:.3f}) | {row['unchanged']:.3f} | "
                  f"{row['R']:.3f} | {row['R_10']:.3f} | {row['R_100']:.3f} | "
                  f"{posterior} | {near} |", flush=True)  # fmt: skip
        if args.plot:
            plot(np.concatenate(tables), args.plot.with_stem(f"{args.plot.stem}-{name.lower()}"))


if __name__ == "__main__":
    main()
