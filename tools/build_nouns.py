"""Make data/nouns.fdx: common nouns of WordNet in hyperbolic space, by fastdx's own trainer.

    python tools/build_nouns.py wordnet_nouns.closure.tsv words_by_frequency.txt data/nouns.fdx

The closure has one pair (noun, hypernym) per line, separated by a tab. The file of words has one
word per line, most frequent first. The script keeps the 10,500 most frequent nouns that have a pair
among themselves. It trains with one thread and a fixed seed, so the file is reproducible.
"""

import sys
from pathlib import Path

from fastdx import Embedding, poincare

COUNT, DIM, EPOCHS, LR = 10_500, 10, 1000, 0.3


def main() -> None:
    closure, frequency, out = map(Path, sys.argv[1:])
    rank = {w: i for i, w in enumerate(frequency.read_text("utf-8").split("\n"))}
    lines = closure.read_text("utf-8").splitlines()
    pairs = [(u, v) for u, v in (line.split("\t") for line in lines)]
    nouns = sorted({w for p in pairs for w in p if w in rank}, key=rank.__getitem__)[:COUNT]
    common = set(nouns)
    pairs = [p for p in pairs if common.issuperset(p)]

    def progress(epoch: int, loss: float) -> None:
        if epoch % 100 == 0:
            print(f"epoch {epoch}: loss {loss:.4f}")

    trained = poincare.train(pairs, DIM, epochs=EPOCHS, lr=LR, seed=1, threads=1,
                             callback=progress)  # fmt: skip
    print(poincare.reconstruction(trained, pairs))
    # Words are most frequent first, as in all vocabularies.
    known = set(trained.words)
    words = [w for w in nouns if w in known]
    Embedding(words, trained.vectors[trained.ids(words)], metric="poincare").save(out)
    print(f"{out}: {len(words)} nouns, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
