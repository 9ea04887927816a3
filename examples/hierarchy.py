"""Measure replacements by WordNet's hierarchy and by a judge embedding.

    python examples/hierarchy.py WORDNET.edges.tsv WORDNET.closure.tsv GLOVE.txt

The mechanisms have an equal mean probability of leaving a word unchanged (N_w), on nouns that all
vocabularies have. No mechanism uses the judge, GloVe.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fastdx import (
    Embedding,
    HyperbolicLaplace,
    Mechanism,
    MultivariateLaplace,
    Tem,
    WordGraph,
    calibration,
)

WORDS, DRAWS = 200, 300


def below(path: str) -> dict[str, set[str]]:
    """Return what stands behind each word in a file of pairs."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in Path(path).read_text("utf-8").splitlines():
        word, kind = line.split("\t")
        found[word].add(kind)
    return found


def unchanged(m: Mechanism, words: list[str]) -> float:
    return float(calibration.statistics(m, words, DRAWS, inputs=False)["N_w"].mean())


def at(make: Callable[[float], Mechanism], low: float, high: float, words: list[str],
       target: float) -> Mechanism:  # fmt: skip
    """Return the mechanism whose mean N_w is the target, by bisection over ε."""
    for _ in range(18):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if unchanged(make(middle), words) < target else (low, middle)
    return make(high)


def main() -> None:
    edges_file, closure_file, judge_file = sys.argv[1:]
    parents, above = below(edges_file), below(closure_file)
    judge = Embedding.load(judge_file)
    unit = judge.vectors / np.linalg.norm(judge.vectors, axis=1, keepdims=True)
    place = {w: i for i, w in enumerate(judge.words)}
    nouns, english = Embedding.default("nouns"), Embedding.default()
    common = [w for w in nouns.words if w in english and w in place]
    # All mechanisms get these candidates: nouns of both vocabularies and of the graph.
    both = [w for w in nouns.words if w in english]
    graph = WordGraph(edges_file, words=both)
    nouns = Embedding(both, nouns.vectors[nouns.ids(both)], metric="poincare")
    english = Embedding(both, english.vectors[english.ids(both)])
    words = [common[i] for i in np.linspace(0, len(common) - 1, WORDS).astype(int)]
    mechanisms: dict[str, tuple[Callable[[float], Mechanism], float, float]] = {
        "Tem, WordGraph": (lambda e: Tem(graph, e), 0.1, 20.0),
        "Tem, Poincaré": (lambda e: Tem(nouns, e), 0.1, 20.0),
        "HyperbolicLaplace": (lambda e: HyperbolicLaplace(nouns, e), 9.0001, 60.0),
        "the paper's noise": (lambda e: HyperbolicLaplace.from_paper(nouns, e), 1e-3, 60.0),
        "Tem, Euclid": (lambda e: Tem(english, e), 0.5, 30.0),
        "MultivariateLaplace": (lambda e: MultivariateLaplace(english, e), 1.0, 60.0),
    }
    print(f"{len(both):,} nouns; of the replacements, the share that is")
    print(f"{'':22s} N_w     ε  hypernym hyponym sibling  ≤4 steps   judge's cosine")
    for target in (0.2, 0.5):
        for name, (make, low, high) in mechanisms.items():
            m = at(make, low, high, words, target)
            if abs(unchanged(m, words) - target) > 0.05:
                least = make(low)
                print(f"{name:22s} cannot: at its smallest ε, {least.epsilon:.2f}, N_w is "
                      f"{unchanged(least, words):.2f}")  # fmt: skip
                continue
            seen, cosines = [], []
            for w in words:
                steps = graph.distances(w)
                for i in m.sample(w, DRAWS):
                    if (y := both[i]) == w:
                        continue
                    seen.append((y in above[w], w in above[y], bool(parents[w] & parents[y]),
                                 steps[i] <= 4))  # fmt: skip
                    if y in place:
                        cosines.append(float(unit[place[w]] @ unit[place[y]]))
            columns = [f"{share:8.3f}" for share in np.mean(seen, axis=0)]
            print(f"{name:22s} {unchanged(m, words):.2f} {m.epsilon:5.2f}  {' '.join(columns)} "
                  f"{np.mean(cosines):10.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
