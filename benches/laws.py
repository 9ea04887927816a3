"""Compare published laws, drawn by FiniteLaw, with Tem: processor time of text, by one thread.

    python benches/laws.py

The text has words of the built-in vocabulary, by 1/(rank + 2.7). A law is new in its first pass
over 30,000 words; *again* is the twentieth, when most tables are made. In brackets: its speed as a
part of Tem's.
"""

from __future__ import annotations

from common import a_word, by_rank, seconds

from fastdx import Embedding, FiniteLaw, Tem
from fastdx.lab import laws

WORDS = 30_000


def main() -> None:
    e = Embedding.default()
    texts = by_rank(e.words, WORDS)
    tem = a_word(Tem(e, 3.0, threads=1), texts, WORDS, 20)
    print("| law | first pass | again |\n|---|---|---|")
    print(f"| Tem, ε = 3 | {seconds(tem[0])} | {seconds(tem[-1])} |")
    for name, law in (
        ("randomised response, ε = 12", laws.randomized_response(e, 12.0)),
        ("CusText, sets of 20, ε = 6", laws.custext(e, 6.0, k=20)),
        ("1-Diffractor, ε = 1", laws.one_diffractor(e, 1.0)),
        ("rank-based, ε = 6", laws.rank_based(e, 6.0)),
    ):
        found = a_word(FiniteLaw(law=law, threads=1), texts, WORDS, 20)
        cells = [f"{seconds(found[i])} ({tem[i] / found[i]:.2g} ×)" for i in (0, -1)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
