"""Nearest words of noisy points: exact and HNSW, beside faiss, numpy, hnswlib, usearch.

python search.py [WORDSxDIM ...], by default 20000x50 20000x300 100000x300.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial

import numpy as np
from common import clustered, median, report, seconds
from numpy.typing import NDArray

from fastdx import Embedding, MultivariateLaplace


def noisy(x: NDArray[np.float32], epsilon: float, count: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    z = rng.standard_normal((count, x.shape[1]))
    z *= (rng.gamma(x.shape[1], 1 / epsilon, count) / np.linalg.norm(z, axis=1))[:, None]
    return x[rng.integers(0, len(x), count)] + z


def exact(name: str, e: Embedding) -> None:
    import faiss

    faiss.cvar.distance_compute_blas_threshold = 20
    x = np.ascontiguousarray(e.vectors)
    queries = noisy(x, 10.0, 1000)
    single = queries.astype(np.float32)
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(x)
    half = (x * x).sum(1) / 2
    faiss.omp_set_num_threads(2)
    e.nearest(queries[:1])
    same = (e.nearest(queries)[0][:, 0] == index.search(single, 1)[1][:, 0]).mean()
    report(f"{name}, 1000 noisy points (answers as faiss {same:.3f})",
           median(partial(e.nearest, queries)), median(partial(index.search, single, 1), 3),
           "faiss flat")  # fmt: skip
    ours = median(partial(e.nearest, queries[:1]), 200)
    by_numpy = median(lambda: int((x @ single[0] - half).argmax()), 50)
    faiss.omp_set_num_threads(1)
    by_faiss = median(partial(index.search, single[:1], 1), 50)
    faiss.omp_set_num_threads(2)
    report(f"{name}, one point", ours, min(by_numpy, by_faiss), "best of numpy, faiss")


def mechanism(name: str, e: Embedding) -> None:
    """MultivariateLaplace.privatize_ids, ε = 10, against numpy and faiss in batches."""
    import faiss

    ids = np.random.default_rng(2).integers(0, len(e), 20_000).astype(np.uint32)
    x = np.ascontiguousarray(e.vectors)
    madlib = MultivariateLaplace(e, 10.0)
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(x)
    half = (x * x).sum(1) / 2
    few = ids[:2000]

    def points(ids: NDArray[np.uint32]) -> NDArray[np.float32]:
        rng = np.random.default_rng()
        z = rng.standard_normal((len(ids), x.shape[1]), dtype=np.float32)
        z *= (rng.gamma(x.shape[1], 0.1, len(ids)) / np.linalg.norm(z, axis=1))[:, None]
        return z + x[ids]

    by_numpy = median(lambda: (points(few) @ x.T - half).argmax(1), 2)
    by_faiss = median(lambda: index.search(points(few), 1), 2)
    ours = median(partial(madlib.privatize_ids, ids), 3)
    search = median(partial(e.nearest, points(ids).astype(np.float64)), 3)
    report(f"{name}, MultivariateLaplace, 20,000 ids", ours, 10 * min(by_numpy, by_faiss),
           "best of numpy, faiss")  # fmt: skip
    print(f"    of which outside the search: {max(0.0, 1 - search / ours):.0%}")


def graphs(name: str, e: Embedding) -> None:
    """Recall on noisy points and queries a second, one thread."""
    import hnswlib
    from usearch.index import Index

    x = np.ascontiguousarray(e.vectors)
    start = time.perf_counter()
    graph = e.build_hnsw(32)
    print(f"{name}: graph of ours in {seconds(time.perf_counter() - start)}")
    theirs = hnswlib.Index("l2", x.shape[1])
    theirs.init_index(len(x), M=32, ef_construction=200)
    theirs.add_items(x, num_threads=2)
    theirs.set_num_threads(1)
    use = Index(ndim=x.shape[1], metric="l2sq", connectivity=32, expansion_add=200)
    use.add(np.arange(len(x)), x, threads=2)
    for epsilon in (20.0, 10.0, 5.0):
        queries = noisy(x, epsilon, 2000)
        single = queries.astype(np.float32)
        true = e.nearest(queries)[0][:, 0]
        words = e.words[:: len(e) // 50]
        rate = len(queries) / median(partial(e.nearest, queries), 3)
        line = f"{name}, ε = {epsilon:g}: exact {rate:,.0f}/s"
        for ef in (64, 256):
            madlib = MultivariateLaplace(graph, epsilon, search="hnsw", ef=ef)
            quality = madlib.search_quality(words, draws=40)
            ids = np.random.default_rng(3).integers(0, len(x), 2000).astype(np.uint32)
            ours = len(ids) / median(partial(madlib.privatize_ids, ids), 3)
            theirs.set_ef(ef)
            rate = len(queries) / median(lambda q=single: theirs.knn_query(q, 1), 3)
            recall = (theirs.knn_query(single, 1)[0][:, 0] == true).mean()
            use.expansion_search = ef
            use_rate = len(queries) / median(lambda q=single: use.search(q, 1, threads=1), 3)
            use_recall = (use.search(single, 1).keys[:, 0] == true).mean()
            line += (f"\n    ef {ef:3d}: ours {ours:9,.0f}/s recall {quality.recall:.3f} "
                     f"(law off by {quality.total_variation:.3f}), hnswlib {rate:9,.0f}/s "
                     f"{recall:.3f}, usearch {use_rate:9,.0f}/s {use_recall:.3f}")  # fmt: skip
        print(line, flush=True)


def main() -> None:
    cells = sys.argv[1:] or ["20000x50", "20000x300", "100000x300"]
    for cell in cells:
        words, dim = map(int, cell.split("x"))
        e = Embedding([f"w{i}" for i in range(words)], clustered(words, dim))
        name = f"{words:,} × {dim}"
        exact(name, e)
        mechanism(name, e)
        if "NO_GRAPHS" not in os.environ and words <= 100_000:
            graphs(name, e)


if __name__ == "__main__":
    main()
