"""Compare Tem's base measures with the uniform one: processor time of text by one thread, memory.

    python benches/languages.py

Texts have words by 1/(rank + 2.7). The first pass draws words of which none was drawn before;
*again* is the sixth. Memory is what a process has grown by after the six: lists, rows and tables.
In brackets: the speed as a part of the uniform Tem's at the same ε.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from common import a_word, by_rank, embedding, seconds

from fastdx import Embedding, Tem

EPSILON = 2.6


def resident() -> float:
    """Return the process's memory in megabytes (Linux)."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096 / 1e6


def measure(size: str, words: int, language: str) -> None:
    e = Embedding.default() if size == "built in" else embedding(*map(int, size.split("×")))
    texts = by_rank(e.words, words)
    before = resident()
    tem = Tem(e, EPSILON, language=language, threads=1)
    took = a_word(tem, texts, words, 6)
    print(json.dumps([took[0], took[-1], resident() - before]))


def main() -> None:
    print("| space | words a pass | base measure | first pass, a word | again, a word | memory |")
    print("|---|---|---|---|---|---|")
    bases = ("uniform", "rank")
    for size, words, languages in (
        ("built in", 200_000, (*bases, "frequency", "english")),
        ("100000×300", 20_000, bases),
        ("400000×300", 5_000, bases),
    ):
        uniform: list[float] = []
        for language in languages:
            row = subprocess.run([sys.executable, __file__, size, str(words), language], check=True,
                                 stdout=subprocess.PIPE)  # fmt: skip
            *took, memory = json.loads(row.stdout)
            uniform = uniform or took
            cells = (f"{seconds(t)} ({u / t:.2g} ×)" for t, u in zip(took, uniform, strict=True))
            print(
                f"| {size} | {words:,} | {language} | {' | '.join(cells)} | {memory:.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:]:
        size, words, language = sys.argv[1:]
        measure(size, int(words), language)
    else:
        main()
