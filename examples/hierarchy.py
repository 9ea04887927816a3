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

from fastdx import Embedding, HyperbolicLaplace, Mechanism, MultivariateLaplace, Tem, WordGraph

WORDS, DRAWS = 200, 300


def pairs(path: str) -> list[list[str]]:
    return [line.split("\t") for line in Path(path).read_text("utf-8").splitlines()]


def unchanged(m: Mechanism, words: list[str]) -> float:
    ids = m.space.ids(words)
    if isinstance(m, Tem):
        return float(np.mean([m.probabilities(w)[i] for w, i in zip(words, ids, strict=True)]))
    return float((m.privatize_ids(np.repeat(ids, DRAWS)) == np.repeat(ids, DRAWS)).mean())


def at(make: Callable[[float], Mechanism], low: float, high: float, words: list[str],
       target: float) -> Mechanism:  # fmt: skip
    """Return the mechanism whose mean N_w is the target, by bisection over ε."""
    for _ in range(18):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if unchanged(make(middle), words) < target else (low, middle)
    return make(high)


def main() -> None:
    edges_file, closure_file, judge_file = sys.argv[1:]
    near: dict[str, set[str]] = defaultdict(set)
    above: dict[str, set[str]] = defaultdict(set)
    parents: dict[str, set[str]] = defaultdict(set)
    for u, v in pairs(edges_file):
        near[u].add(v)
        near[v].add(u)
        parents[u].add(v)
    for u, v in pairs(closure_file):
        above[u].add(v)
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
            counts: dict[str, int] = defaultdict(int)
            cosines = []
            for w in words:
                within = {w}
                for _ in range(4):
                    within |= {x for y in within for x in near[y]}
                for i in m.sample(w, DRAWS):
                    y = both[i]
                    if y == w:
                        continue
                    counts["all"] += 1
                    counts["hypernym"] += y in above[w]
                    counts["hyponym"] += w in above[y]
                    counts["sibling"] += bool(parents[w] & parents[y])
                    counts["within"] += y in within
                    if y in place:
                        cosines.append(float(unit[place[w]] @ unit[place[y]]))
            share = {k: v / counts["all"] for k, v in counts.items()}
            columns = [f"{share[k]:8.3f}" for k in ("hypernym", "hyponym", "sibling", "within")]
            print(f"{name:22s} {unchanged(m, words):.2f} {m.epsilon:5.2f}  {' '.join(columns)} "
                  f"{np.mean(cosines):10.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
