"""Rebuild data/recommended.cover, the cover of the recommended policy (src/cover/kept.rs).

    python tools/build_recommended.py

Run it when the built-in words, the list of offensive words or the recommended policy change. A test
of the core compares the file with the cover that is built.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fastdx import Cover, Embedding
from fastdx._core import RECOMMENDED_BALANCE, RECOMMENDED_COVER

PATH = Path(__file__).resolve().parents[1] / "data" / "recommended.cover"
LEAST = 3
"""Of a set: the default of `Tem`."""


def main() -> None:
    """Build the cover and write its sets."""
    space = Embedding.default()
    cover = Cover.balanced(space, RECOMMENDED_COVER, weight=RECOMMENDED_BALANCE, least=LEAST,
                           exclude="offensive")  # fmt: skip
    ids = {word: id for id, word in enumerate(space.words)}
    sets = [np.array([ids[w] for w in cover.sets(word)], "<u2") for word in space.words]
    weight = np.float64(RECOMMENDED_BALANCE).view(np.uint64)
    header = [int(cover.fingerprint, 16), cover.k, weight, LEAST, len(sets)]
    sizes = np.array([len(s) for s in sets], "<u2")
    PATH.write_bytes(b"".join([np.array(header, "<u8").tobytes(), sizes.tobytes(),
                               *(s.tobytes() for s in sets)]))  # fmt: skip
    print(
        f"{PATH.name}: {len(cover):,} outputs, {sizes.sum():,} words in sets, {cover.fingerprint}"
    )


if __name__ == "__main__":
    main()
