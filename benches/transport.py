"""Compare Earth Mover's distances with POT, scipy and gensim. Needs ../shared/data."""

from __future__ import annotations

from functools import partial

import numpy as np
import ot
import pandas as pd
from common import SHARED, median, needed, report, seconds, timed
from gensim.models import KeyedVectors
from scipy.optimize import linear_sum_assignment

import fastdx
from fastdx import Embedding
from fastdx.bags import bag_words

RNG = np.random.default_rng(0)


def pairs(e: Embedding) -> None:
    vectors = e.vectors.astype(np.float64)
    for n in (10, 50, 100, 200, 500):
        ids = RNG.permutation(20_000)[: 2 * n]
        a, b = ([e.words[i] for i in part] for part in (ids[:n], ids[n:]))
        x, y = vectors[ids[:n]], vectors[ids[n:]]
        cost = ot.dist(x, y, "euclidean")
        even, ones = np.full(n, 1 / n), np.ones(n)
        runs = 301 if n < 100 else 51 if n < 500 else 11
        made = median(partial(ot.dist, x, y, "euclidean"), runs)
        by_pot = median(partial(ot.emd2, even, even, cost), runs)
        by_scipy = median(partial(linear_sum_assignment, cost), runs)
        ours = median(partial(fastdx.earth_movers_distance, a, b, e), runs)
        report(f"one pair, N = {n}", ours, made + min(by_pot, by_scipy), "ot.dist and the faster")
        report("  solved alone", median(partial(fastdx.optimal_transport, ones, ones, cost), runs),
               min(by_pot, by_scipy), "the faster of POT and scipy")  # fmt: skip
        if n in (50, 200, 500):
            u, v = RNG.random(n), RNG.random(n)
            u, v = u / u.sum(), v / v.sum()
            report("  general weights", median(partial(fastdx.optimal_transport, u, v, cost), runs),
                   median(partial(ot.emd2, u, v, cost), runs), "POT")  # fmt: skip


def documents(e: Embedding) -> None:
    vectors = KeyedVectors(e.dim)
    vectors.add_vectors(list(e.words), e.vectors)
    wide = e.vectors.astype(np.float64)
    for n in (10, 50, 100):
        bags = [RNG.choice(20_000, n, replace=False) for _ in range(200)]
        words = [[e.words[i] for i in bag] for bag in bags]
        ours = timed(partial(fastdx.pairwise_emd, words, e, words))[0] / 200**2
        even = np.full(n, 1 / n)

        def by_pot(a: int, b: int, bags: list = bags, even: np.ndarray = even) -> float:
            return ot.emd2(even, even, ot.dist(wide[bags[a]], wide[bags[b]], "euclidean"))

        def by_scipy(a: int, b: int, bags: list = bags) -> None:
            linear_sum_assignment(ot.dist(wide[bags[a]], wide[bags[b]], "euclidean"))

        def by_gensim(a: int, b: int, words: list = words) -> None:
            vectors.wmdistance(words[a], words[b])

        some = [(int(a), int(b)) for a, b in RNG.integers(200, size=(100, 2))]
        for peer, call, asked in (("POT", by_pot, some), ("scipy", by_scipy, some),
                                  ("gensim", by_gensim, some[:20])):  # fmt: skip
            theirs = timed(lambda c=call, p=asked: [c(a, b) for a, b in p])[0] / len(asked)
            report(f"200 × 200 documents, N = {n}, a pair", ours, theirs, peer)


def nearest(e: Embedding) -> None:
    texts = []
    for part in ("train", "test"):
        path = SHARED / "text" / f"reuters_c50.{part}.jsonl.gz"
        texts += pd.read_json(path, lines=True)["text"].tolist()
    bags = [[w for w in bag_words(text) if w in e] for text in texts]
    queries = bags[::25]
    ours, found = timed(partial(fastdx.nearest_documents, queries, bags, e, 5))
    # All distances of a part, to measure the time and to compare the answers.
    part = queries[:4]
    took, every = timed(partial(fastdx.pairwise_emd, part, e, bags))
    theirs = took * len(queries) / len(part)
    assert np.allclose(np.sort(every)[:, :5], found.distances[: len(part)])
    report(f"5 nearest of {len(bags):,}, {len(queries)} queries", ours, theirs, "all distances")
    print(f"  {found.pruning}; {seconds(ours / found.pruning['pairs'])} a pair")


def main() -> None:
    (vectors,) = needed("embeddings/minilm-40k-300d.npy")
    e = Embedding.load(vectors, vocabulary=vectors.with_name("minilm-40k.vocab"))
    pairs(e)
    documents(e)
    nearest(e)


if __name__ == "__main__":
    main()
