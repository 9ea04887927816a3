"""Author obfuscation, the experiment of POST'19: does the author go, does the topic stay?

    python -m experiments.author_obfuscation ../shared/data/text VECTORS.npy [--plot FILE.png]

Reuters C50: 50 authors with 50 known texts each; of the other 2,500 texts every tenth is
privatised. For every ε it prints how often the author is found by character 4-grams (Koppel et
al. 2011) and by the nearest document under the Earth Mover's distance, and how many of a text's
five nearest documents are among those of the original: the texts have no topics, so neighbours
stand for them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from experiments.data import Shared
from fastdx import BagOfWords, Embedding, MultivariateLaplace, nearest_documents
from fastdx.bags import bag_words, text_of
from fastdx.lab.evaluation import Attribution

EPSILONS = (5, 10, 15, 20, 25, 30)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=Path)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    vocabulary = args.vectors.with_name("minilm-40k.vocab")
    embedding = Embedding.load(args.vectors, vocabulary=vocabulary)
    # The folder of texts is part of the data's.
    source = Shared(args.texts.parent)
    known_texts, known_authors = source.news("train")
    texts, authors = source.news("test")
    texts, authors = texts[:: args.every], authors[:: args.every]

    def bags_of(texts: list[str]) -> list[Counter[str]]:
        return [Counter(w for w in bag_words(t) if w in embedding) for t in texts]

    known = bags_of(known_texts)
    originals = bags_of(texts)
    # The attacker knows the others' texts in the same representation: bags.
    attribution = Attribution([text_of(bag) for bag in known], known_authors, known="together",
                              weights="log")  # fmt: skip

    def measure(bags: list[Counter[str]]) -> tuple[float, float, np.ndarray]:
        grams = attribution.attribute([text_of(bag) for bag in bags]).authors
        nearest = nearest_documents(bags, known, embedding, 5).ids
        by_grams = np.mean([a == b for a, b in zip(grams, authors, strict=True)])
        by_nearest = np.mean(
            [known_authors[i] == b for i, b in zip(nearest[:, 0], authors, strict=True)]
        )
        return float(by_grams), float(by_nearest), nearest

    def show(name: str, grams: float, nearest: float, kept: float, same: float) -> None:
        print(f"{name:>9s} {grams:14.3f} {nearest:16.3f} {kept:16.3f} {same:17.3f}", flush=True)

    print(f"{len(texts)} texts of {len(set(authors))} authors, on average "
          f"{np.mean([b.total() for b in originals]):.0f} words; {embedding!r}")  # fmt: skip
    print("        ε  author, 4-grams  author, nearest  neighbours kept  words unchanged")
    grams, by_nearest, before = measure(originals)
    show("original", grams, by_nearest, 1.0, 1.0)
    rows = []
    for epsilon in EPSILONS:
        bags = BagOfWords(MultivariateLaplace(embedding, epsilon))
        private = [bags.privatize(bag) for bag in originals]
        grams, by_nearest, after = measure(private)
        kept = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(before, after, strict=True)])
        pairs = zip(originals, private, strict=True)
        same = np.mean([(a & b).total() / a.total() for a, b in pairs])
        rows.append((epsilon, grams, by_nearest, float(kept)))
        show(str(epsilon), grams, by_nearest, float(kept), float(same))
    if args.plot:
        plot(args.plot, rows)


def plot(path: Path, rows: list[tuple[float, float, float, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    epsilons, grams, nearest, kept = zip(*rows, strict=True)
    pyplot.plot(epsilons, grams, "o-", label="author found, 4-grams")
    pyplot.plot(epsilons, nearest, "s-", label="author found, nearest document")
    pyplot.plot(epsilons, kept, "^-", label="neighbours kept")
    pyplot.xlabel("ε per unit of distance")
    pyplot.ylabel("share")
    pyplot.legend()
    pyplot.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
