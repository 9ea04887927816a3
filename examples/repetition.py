"""An observer names a word that is released again and again.

A word stands n times in a text. One observer names the output that comes most often. Another one
knows the law and names the word that explains all outputs best. Independent draws give the word
away sooner or later, at every ε: each tells I bits, and n of them at most n·I. Consistent
replacement draws once for each distinct word, and n draws tell no more than one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastdx import Tem
from fastdx.channel import Channel
from fastdx.lab.evaluation import frequency_attack, likelihood_attack

EPSILON, COVER_EPSILON, WORDS = 3.0, 6.0, 500
TIMES = (1, 2, 5, 10, 20, 50, 100)


def main() -> None:
    rng = np.random.default_rng(0)
    plain = Tem(epsilon=EPSILON)
    cover = Tem(epsilon=COVER_EPSILON, cover=40)
    consistent = Tem(epsilon=EPSILON, consistent=True)
    known = plain.embedding.words
    # Words that the tokeniser leaves whole: a text of them is these words.
    whole = [w for w in rng.permutation(known).tolist() if plain.tokenize(w) == [w]]
    words = whole[:WORDS]

    def counting(tem: Tem) -> list[NDArray[np.bool_]]:
        return [frequency_attack(tem, words, n) for n in TIMES]

    def explaining(tem: Tem) -> list[NDArray[np.bool_]]:
        return list(likelihood_attack(tem, words, TIMES))

    print(f"Share of {len(words):,} random words of the built-in vocabulary that an observer, to "
          "whom all words are alike, names by one guess from n outputs of the word. One output "
          f"tells I bits, n tell at most n·I, and {np.log2(len(known)):.1f} bits name one of "
          f"{len(known):,} words:\n")  # fmt: skip
    print("| mechanism | I | the observer | " + " | ".join(f"n = {n}" for n in TIMES) + " |")
    print("|---|---|---|" + "---|" * len(TIMES))
    observers = {"counts": counting, "knows the law": explaining}
    for name, tem in (
        (f"Tem, ε = {EPSILON:g}", plain),
        ("`Tem.recommended()`", Tem.recommended()),
        (f"Tem on a cover of 40, ε = {COVER_EPSILON:g}", cover),
        (f"Tem, ε = {EPSILON:g}, `consistent=True`", consistent),
    ):
        # A word's first draw tells as much where the next ones repeat it.
        told = Channel.of(plain if tem is consistent else tem).bits(np.ones(len(known)))
        for observer, attack in observers.items():
            if tem is consistent and attack is explaining:
                continue
            cells = "".join(f" {hits.mean():.0%} |" for hits in attack(tem))
            print(f"| {name} | {told:.2f} | {observer} |{cells}")


if __name__ == "__main__":
    main()
