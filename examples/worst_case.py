"""Compare mean N_w of hyperbolic and Euclidean noise at an equal worst case (ICDM'19, table IV).

    python examples/worst_case.py WORDNET.closure.tsv VOCABULARY.vocab 50d.npy 300d.npy

N_w is the percentage of 500 draws in which a word comes back unchanged. For each ε of the
hyperbolic noise, each Euclidean mechanism gets the ε at which its worst word comes back equally
often; a lower mean is then better. All mechanisms choose among the same nouns. Longer training
moves the words of a Poincaré embedding apart, so there are three trainings. Prints a table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fastdx import Embedding, HyperbolicLaplace, Mechanism, MultivariateLaplace, poincare

NOUNS, MEASURED, DRAWS = 8_000, 200, 500
NOMINAL = (0.125, 1.0, 8.0)
TRAININGS = ((5, 0.05), (20, 0.1), (300, 0.3))  # epochs, learning rate


def unchanged(m: Mechanism, ids: np.ndarray) -> np.ndarray:
    drawn = m.privatize_ids(np.repeat(ids, DRAWS)).reshape(-1, DRAWS)
    return 100 * (drawn == ids[:, None]).mean(axis=1)


def with_worst(make: Callable[[float], Mechanism], ids: np.ndarray, worst: float) -> Mechanism:
    """Return the mechanism whose worst word comes back equally often, by bisection over ε."""
    low, high = 0.5, 100.0
    for _ in range(12):
        middle = (low * high) ** 0.5
        above = unchanged(make(middle), ids).max() >= worst
        low, high = (low, middle) if above else (middle, high)
    return make(high)


def main() -> None:
    closure, vocabulary, *arrays = map(Path, sys.argv[1:])
    english = [Embedding.load(a, vocabulary=vocabulary) for a in arrays]
    rank = {w: i for i, w in enumerate(english[0].words)}
    lines = closure.read_text("utf-8").splitlines()
    pairs = [(u, v) for u, v in (line.split("\t") for line in lines) if u in rank and v in rank]
    nouns = sorted({w for p in pairs for w in p}, key=rank.__getitem__)[:NOUNS]
    kept = set(nouns)
    pairs = [p for p in pairs if kept.issuperset(p)]
    known = {w for p in pairs for w in p}
    nouns = [w for w in nouns if w in known]
    ids = np.linspace(0, len(nouns) - 1, MEASURED).astype(np.uint32)
    euclid = [Embedding(nouns, e.vectors[e.ids(nouns)]) for e in english]
    print("| n | training | nominal ε | provable ε | worst N_w | mean N_w, hyperbolic |"
          + "".join(f" mean N_w, Euclid {e.dim} |" for e in euclid))  # fmt: skip
    print("|---" * (6 + len(euclid)) + "|")
    for dim in (2, 10, 100):
        for epochs, rate in TRAININGS:
            trained = poincare.train(pairs, dim, epochs=epochs, lr=rate, seed=1,
                                     burn_in=min(10, epochs // 2))  # fmt: skip
            ball = Embedding(nouns, trained.vectors[trained.ids(nouns)], metric="poincare")
            for nominal in NOMINAL:
                m = HyperbolicLaplace.from_paper(ball, nominal)
                share = unchanged(m, ids)
                line = (f"| {dim} | {epochs} epochs, lr {rate:g} | {nominal:g} | {m.epsilon:g} | "
                        f"{share.max():.1f} | {share.mean():.1f} |")  # fmt: skip
                for e in euclid:
                    other = with_worst(
                        lambda eps, e=e: MultivariateLaplace(e, eps),  # type: ignore[misc]
                        ids,
                        share.max(),
                    )
                    line += f" {unchanged(other, ids).mean():.1f} |"
                print(line, flush=True)
    print(f"\n{len(nouns):,} nouns, {MEASURED} measured, {DRAWS:,} draws each; N_w in percent.")


if __name__ == "__main__":
    main()
