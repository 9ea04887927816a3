"""How well a Poincaré embedding reconstructs WordNet's mammals, and how long its training takes.

python examples/mammals.py ../shared/data/graph/wordnet_mammals.closure.tsv
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from fastdx import poincare

DIM, SEED = 5, 20
TRAININGS = ((50, 10), (100, 10))  # epochs, negatives


def main() -> None:
    (edges,) = map(Path, sys.argv[1:])
    print("| dimensions | epochs | negatives | mean rank | MAP | processor seconds |")
    print("|---|---|---|---|---|---|")
    for epochs, negatives in TRAININGS:
        start = time.process_time()
        trained = poincare.train(
            edges, DIM, epochs=epochs, negatives=negatives, seed=SEED, threads=1
        )
        seconds = time.process_time() - start
        found = poincare.reconstruction(trained, edges)
        print(f"| {DIM} | {epochs} | {negatives} | {found.mean_rank:.2f} | {found.map:.2f} "
              f"| {seconds:.1f} |")  # fmt: skip
    pairs = len(edges.read_text("utf-8").splitlines())
    print(f"\n{len(trained):,} synsets, {pairs:,} pairs; seed {SEED}.")


if __name__ == "__main__":
    main()
