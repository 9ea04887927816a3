"""An observer names a word that is released again and again.

    python examples/repetition.py [--epsilon 3] [--cover-epsilon 6] [--words 500]

A word stands n times in a text. One observer names the output that comes most often. Another one
knows the law and names the word that explains all outputs best. Independent draws give the word
away sooner or later, at every ε: each tells I bits, and n of them at most n·I. Consistent
replacement draws once for each distinct word, and n draws tell no more than one.
"""

from __future__ import annotations

import argparse

import numpy as np

from fastdx import Tem
from fastdx.channel import Channel
from fastdx.lab.evaluation import frequency_attack, likelihood_attack

TIMES = (1, 2, 5, 10, 20, 50, 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--cover-epsilon", type=float, default=6.0)
    parser.add_argument("--words", type=int, default=500)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    plain = Tem(epsilon=args.epsilon)
    recommended = Tem.recommended()
    cover = Tem(epsilon=args.cover_epsilon, cover=40)
    consistent = Tem(epsilon=args.epsilon, consistent=True)
    known = plain.embedding.words
    # Words that the tokeniser leaves whole: a text of them is these words.
    whole = [w for w in rng.permutation(known).tolist() if plain.tokenize(w) == [w]]
    words = whole[: args.words]

    def counting(tem: Tem) -> list[float]:
        return [float(frequency_attack(tem, words, n).mean()) for n in TIMES]

    def explaining(tem: Tem) -> list[float]:
        return [float(hits.mean()) for hits in likelihood_attack(tem, words, TIMES)]

    def bits(tem: Tem) -> float:
        alike = np.full(len(known), 1 / len(known))
        return float(Channel.of(tem).bits(alike))

    print(f"Share of {len(words):,} random words of the built-in vocabulary that an observer, to "
          "whom all words are alike, names by one guess from n outputs of the word. One output "
          f"tells I bits, n tell at most n·I, and {np.log2(len(known)):.1f} bits name one of "
          f"{len(known):,} words:\n")  # fmt: skip
    print("| mechanism | I | the observer | " + " | ".join(f"n = {n}" for n in TIMES) + " |")
    print("|---|---|---|" + "---|" * len(TIMES))
    on_cover = f"Tem on a cover of 40, ε = {args.cover_epsilon:g}"
    for name, tem, observer, shares in (
        (f"Tem, ε = {args.epsilon:g}", plain, "counts", counting(plain)),
        (f"Tem, ε = {args.epsilon:g}", plain, "knows the law", explaining(plain)),
        ("`Tem.recommended()`", recommended, "counts", counting(recommended)),
        ("`Tem.recommended()`", recommended, "knows the law", explaining(recommended)),
        (on_cover, cover, "counts", counting(cover)),
        (on_cover, cover, "knows the law", explaining(cover)),
        (f"Tem, ε = {args.epsilon:g}, `consistent=True`", plain, "counts", counting(consistent)),
    ):
        cells = "".join(f" {share:.0%} |" for share in shares)
        print(f"| {name} | {bits(tem):.2f} | {observer} |{cells}")


if __name__ == "__main__":
    main()
