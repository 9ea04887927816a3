"""Measure Tem on 400,000 words × 300: one repeated word, and random words at a new ε.

    python benches/new_epsilon.py

It uses one thread. The lists of 2,000 words are made beforehand. Every call at a new ε uses a new
Tem; a separate column has the time to make it.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from common import embedding, median, seconds

from fastdx import Tem

WORDS = 400_000


def main() -> None:
    rng = np.random.default_rng(3)
    tem = Tem(embedding(WORDS, 300), 4.0, threads=1)
    some = rng.integers(0, WORDS, 2000).astype(np.uint32)
    for _ in range(2):
        tem.privatize_ids(some)
    calls = (64, 2000)
    print("| ε | the same word again, a draw | "
          + "".join(f"random words at a new ε, {n:,} in a call, a draw | " for n in calls)
          + "to make the new Tem |\n|---|---|---|---|---|")  # fmt: skip
    for epsilon in (2.0, 3.0, 4.0, 6.0, 8.0):
        again, same = tem.with_epsilon(epsilon), np.full(1000, some[0])
        for _ in range(400):  # until nothing more is made
            again.privatize_ids(same)
        cells = [median(lambda t=again, w=same: t.privatize_ids(w), 51) / len(same)]
        making = []
        for size in calls:
            times = []
            for _ in range(101):
                start = time.perf_counter()
                new = tem.with_epsilon(epsilon * rng.uniform(0.999, 1.001))
                made = time.perf_counter()
                words = rng.choice(some, size)
                drawing = time.perf_counter()
                new.privatize_ids(words)
                times.append(time.perf_counter() - drawing)
                making.append(made - start)
            cells.append(statistics.median(times) / size)
        cells.append(statistics.median(making))
        print(f"| {epsilon:g} | {' | '.join(map(seconds, cells))} |", flush=True)


if __name__ == "__main__":
    main()
