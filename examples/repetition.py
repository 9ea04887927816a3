"""What counting outputs recovers: independent draws against consistent replacement.

    python examples/repetition.py [--epsilon 3] [--words 150]

A word stands n times in a text. The observer takes the output that comes most often for the
word. Independent draws give it away sooner or later, at every ε; consistent replacement draws
once for each distinct word, and n draws tell no more than one.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from fastdx import Tem

TIMES = (1, 2, 5, 10, 20, 50, 100)


def recovered(tem: Tem, words: list[str], times: int) -> float:
    """Share of words that are the most frequent of their n outputs (ties: the first)."""
    texts = tem.privatize([" ".join([word] * times) for word in words])
    guesses = [Counter(text.split()).most_common(1)[0][0] for text in texts]
    return float(np.mean([g == w for g, w in zip(guesses, words, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--words", type=int, default=2000)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    independent = Tem(epsilon=args.epsilon)
    consistent = Tem(epsilon=args.epsilon, consistent=True)
    known = independent.embedding.words
    # Words that the tokeniser leaves whole: a text of them is these words.
    whole = [w for w in rng.permutation(known).tolist() if independent.tokenize(w) == [w]]
    words = whole[: args.words]
    print(f"Share of {len(words):,} random words of the built-in vocabulary that an observer "
          f"recovers at ε = {args.epsilon:g} from n outputs of the word:\n")  # fmt: skip
    print("| n |" + "".join(f" {n} |" for n in TIMES))
    print("|---|" + "---|" * len(TIMES))
    for name, tem in (("independent draws", independent), ("`consistent=True`", consistent)):
        shares = (recovered(tem, words, n) for n in TIMES)
        print(f"| {name} |" + "".join(f" {share:.0%} |" for share in shares))


if __name__ == "__main__":
    main()
