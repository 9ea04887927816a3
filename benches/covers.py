"""Compare Tem on covers with Tem: processor time of text, by one thread.

    python benches/covers.py

The text has words of the built-in vocabulary, by 1/(rank + 2.7). The first pass makes lists and
tables; the warm passes come after two others, the late ones after forty, and tables are made in
all between. Mechanisms take turns, and medians are printed; for all passes together, the mean.
"""

from __future__ import annotations

import numpy as np
from common import a_word, by_rank, seconds

from fastdx import Cover, Embedding, Tem

WORDS = 300_000
EPSILONS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
PARTS = ("first pass", "warm", "late")
EVERY = ("first pass", "second", *("warm",) * 3, *("between",) * 35, *("late",) * 3)


def main() -> None:
    """Print the processor time of a word for Tem and for balanced covers of 20 and 40."""
    e = Embedding.default()
    covers = {"Tem": None, **{f"cover={k}": Cover.balanced(e, k) for k in (20, 40)}}
    texts = by_rank(e.words, WORDS)
    parts = (*PARTS, f"all {len(EVERY)} passes")
    print("| ε | " + " | ".join(f"{name}, {part}" for part in parts for name in covers) + " |")
    print("|---" * (1 + len(parts) * len(covers)) + "|")
    for epsilon in EPSILONS:
        times: dict[tuple[str, str], list[float]] = {}
        tems = {name: Tem(e, epsilon, cover=cover, threads=1) for name, cover in covers.items()}
        for part in EVERY:
            for name, tem in tems.items():
                (once,) = a_word(tem, texts, WORDS)
                for which in (part, parts[-1]):
                    times.setdefault((which, name), []).append(once)
        cells = [f"{epsilon:g}"]
        for part in parts:
            middle = np.mean if part == parts[-1] else np.median
            tem = float(middle(times[part, "Tem"]))
            cells.append(seconds(tem))
            for name in covers:
                if name != "Tem":
                    cover = float(middle(times[part, name]))
                    cells.append(f"{seconds(cover)} ({cover / tem:.2f} ×)")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
