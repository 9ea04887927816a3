"""Count texts with an offensive word before and after, with and without `exclude="offensive"`.

    python examples/offensive.py [--texts 20000] [--epsilon 3]

The texts have 20 words each, drawn from the built-in vocabulary by Zipf's law over its ranks. A
word is offensive if it is in the built-in list (data/offensive.txt).
"""

from __future__ import annotations

import argparse

import numpy as np

from fastdx import Cover, Embedding, MultivariateLaplace, Tem
from fastdx.mechanisms import Mechanism

LENGTH = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=3.0)
    args = parser.parse_args()
    e = Embedding.default()
    offensive = np.zeros(len(e), dtype=bool)
    offensive[e.ids(Cover.identity(e, exclude="offensive").excluded)] = True
    chance = 1 / (np.arange(len(e)) + 3.7)
    ids = np.random.default_rng(0).choice(
        len(e), (args.texts, LENGTH), p=chance / chance.sum()
    ).astype(np.uint32)  # fmt: skip

    def texts(found: np.ndarray) -> int:
        return int(offensive[found].any(axis=1).sum())

    print(f"Of {args.texts:,} texts of {LENGTH} words {texts(ids):,} hold one of the "
          f"{int(offensive.sum())} words of the list that the vocabulary has. Private texts that "
          f"do, at ε = {args.epsilon:g}:\n\n| mechanism | by default | exclude=\"offensive\" |\n"
          "|---|---|---|")  # fmt: skip

    def count(mechanism: Mechanism) -> int:
        return texts(mechanism.privatize_ids(ids.ravel()).reshape(ids.shape))

    for name, make in (
        ("Tem", lambda exclude: Tem(e, args.epsilon, exclude=exclude)),
        ("Tem, cover k = 40", lambda exclude: Tem(e, args.epsilon, cover=40, exclude=exclude)),
        ("MultivariateLaplace", lambda exclude: MultivariateLaplace(e, 5 * args.epsilon,
                                                                    exclude=exclude)),
    ):  # fmt: skip
        print(f"| {name} | {count(make(None)):,} | {count(make('offensive')):,} |")


if __name__ == "__main__":
    main()
