"""Measure three speeds from Python: many texts, one text, and the first text of a program.

    python benches/headline.py

The texts have words of the built-in vocabulary, drawn by Zipf's law.
"""

from __future__ import annotations

import os
import statistics
from functools import partial

import numpy as np
from common import fresh, median, seconds, texts, timed

from fastdx import Tem

FIRST = "import fastdx\nfastdx.Tem(epsilon=3.0).privatize('I would like a cup of coffee, please.')"


def main() -> None:
    tem = Tem(epsilon=3.0)
    many = texts(tem.embedding.words, 10_000, 200)

    def rate(passes: int) -> float:
        """Words a second, after so many further passes that make lists and tables."""
        for _ in range(passes):
            tem.privatize(many)
        return 10_000 * 200 / median(partial(tem.privatize, many))

    soon, late = rate(1), rate(10)

    few = texts(tem.embedding.words, 20_000, 10)
    single = [timed(partial(tem.privatize, text))[0] for text in few]
    middle, high = np.quantile(single, [0.5, 0.99])

    first = [fresh(FIRST) for _ in range(11)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print("| `Tem(epsilon=3.0)`, 20,000 words × 50, from Python | |\n|---|---|")
    print(f"| 10,000 texts of 200 words in one call, {cores} threads | "
          f"{soon / 1e6:.1f} million words/s |")  # fmt: skip
    print(f"| the same after ten calls more | {late / 1e6:.1f} million words/s |")
    print(f"| one text of 10 words | median {seconds(middle)}, p99 {seconds(high)} |")
    print(f"| from `import fastdx` to the first private sentence, beyond numpy | "
          f"{seconds(statistics.median(first))} |")  # fmt: skip


if __name__ == "__main__":
    main()
