"""Count texts with an offensive word before and after, with and without `exclude="offensive"`.

The texts have 20 words each, drawn from the built-in vocabulary by Zipf's law over its ranks. A
word is offensive if it is in the built-in list (data/offensive.txt).
"""

from __future__ import annotations

import numpy as np

from fastdx import Cover, Embedding, MultivariateLaplace, Tem
from fastdx.mechanisms import Mechanism

TEXTS, LENGTH, EPSILON = 20_000, 20, 3.0


def main() -> None:
    e = Embedding.default()
    offensive = np.zeros(len(e), dtype=bool)
    offensive[e.ids(Cover.identity(e, exclude="offensive").excluded)] = True
    chance = 1 / (np.arange(len(e)) + 3.7)
    ids = np.random.default_rng(0).choice(
        len(e), (TEXTS, LENGTH), p=chance / chance.sum()
    ).astype(np.uint32)  # fmt: skip

    def texts(found: np.ndarray) -> int:
        return int(offensive[found].any(axis=1).sum())

    print(f"Of {TEXTS:,} texts of {LENGTH} words {texts(ids):,} hold one of the "
          f"{int(offensive.sum())} words of the list that the vocabulary has. Private texts that "
          f"do, at ε = {EPSILON:g}:\n\n| mechanism | by default | exclude=\"offensive\" |\n"
          "|---|---|---|")  # fmt: skip

    def count(mechanism: Mechanism) -> int:
        return texts(mechanism.privatize_ids(ids.ravel()).reshape(ids.shape))

    for name, make in (
        ("Tem", lambda exclude: Tem(e, EPSILON, exclude=exclude)),
        ("Tem, cover k = 40", lambda exclude: Tem(e, EPSILON, cover=40, exclude=exclude)),
        ("MultivariateLaplace", lambda exclude: MultivariateLaplace(e, 5 * EPSILON,
                                                                    exclude=exclude)),
    ):  # fmt: skip
        print(f"| {name} | {count(make(None)):,} | {count(make('offensive')):,} |")


if __name__ == "__main__":
    main()
