"""Compare nearest-word search, exact and by graphs, with faiss, numpy, hnswlib and usearch.

python search.py [WORDSxDIM ...], by default 20000x50 20000x300 100000x300.
python search.py --graphs [WORDSxDIM ...], by default 20000x50 20000x300: a table; two threads each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from common import clustered, flat_index, median, report, seconds, timed
from numpy.typing import NDArray

from fastdx import Embedding, MultivariateLaplace


def noisy(x: NDArray[np.float32], epsilon: float, count: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    z = rng.standard_normal((count, x.shape[1]))
    z *= (rng.gamma(x.shape[1], 1 / epsilon, count) / np.linalg.norm(z, axis=1))[:, None]
    return x[rng.integers(0, len(x), count)] + z


def quality(graph: Embedding, epsilon: float, ef: int, words: Sequence[int]) -> tuple[float, float]:
    """Return how often a graph finds the nearest word, and how far the laws of words are off."""
    ids = np.repeat(words, 40)
    exact = MultivariateLaplace(graph, epsilon, seed=1).privatize_ids(ids)
    near = MultivariateLaplace(graph, epsilon, search="hnsw", ef=ef, seed=1).privatize_ids(ids)
    pairs = zip(exact.reshape(-1, 40), near.reshape(-1, 40), strict=True)
    counts = [[np.bincount(row, minlength=len(graph)) for row in pair] for pair in pairs]
    off = sum(int(np.abs(one - other).sum()) for one, other in counts)
    return float((exact == near).mean()), off / 2 / len(ids)


def exact(name: str, e: Embedding) -> None:
    import faiss

    x = np.ascontiguousarray(e.vectors)
    queries = noisy(x, 10.0, 1000)
    single = queries.astype(np.float32)
    index = flat_index(x)
    half = (x * x).sum(1) / 2
    # Ours come first: threads of faiss and of OpenBLAS turn in a loop for a while after their work,
    # and take the cores from others.
    e.nearest(queries[:1])
    many, one = median(partial(e.nearest, queries)), median(partial(e.nearest, queries[:1]), 200)
    faiss.omp_set_num_threads(2)
    same = (e.nearest(queries)[0][:, 0] == index.search(single, 1)[1][:, 0]).mean()
    report(f"{name}, 1000 noisy points (answers as faiss {same:.3f})",
           many, median(partial(index.search, single, 1), 3), "faiss flat")  # fmt: skip
    by_numpy = median(lambda: int((x @ single[0] - half).argmax()), 50)
    faiss.omp_set_num_threads(1)
    by_faiss = median(partial(index.search, single[:1], 1), 50)
    faiss.omp_set_num_threads(2)
    report(f"{name}, one point", one, min(by_numpy, by_faiss), "best of numpy, faiss")


def mechanism(name: str, e: Embedding) -> None:
    """Compare MultivariateLaplace.privatize_ids at ε = 10 with numpy and faiss in batches."""
    ids = np.random.default_rng(2).integers(0, len(e), 20_000).astype(np.uint32)
    x = np.ascontiguousarray(e.vectors)
    madlib = MultivariateLaplace(e, 10.0)
    index = flat_index(x)
    half = (x * x).sum(1) / 2
    few = ids[:2000]

    def points(ids: NDArray[np.uint32]) -> NDArray[np.float32]:
        rng = np.random.default_rng()
        z = rng.standard_normal((len(ids), x.shape[1]), dtype=np.float32)
        z *= (rng.gamma(x.shape[1], 0.1, len(ids)) / np.linalg.norm(z, axis=1))[:, None]
        return z + x[ids]

    ours = median(partial(madlib.privatize_ids, ids), 3)
    search = median(partial(e.nearest, points(ids).astype(np.float64)), 3)
    by_numpy = median(lambda: (points(few) @ x.T - half).argmax(1), 2)
    by_faiss = median(lambda: index.search(points(few), 1), 2)
    report(f"{name}, MultivariateLaplace, 20,000 ids", ours, 10 * min(by_numpy, by_faiss),
           "best of numpy, faiss")  # fmt: skip
    print(f"    of which outside the search: {max(0.0, 1 - search / ours):.0%}")


def graphs(name: str, e: Embedding) -> str:
    """Return rows of the table, and the times to build the graphs."""
    import hnswlib
    from usearch.index import Index

    x = np.ascontiguousarray(e.vectors)
    took, graph = timed(partial(e.build_hnsw, 32))
    built = f"{name}: fastdx with hnsw_rs {seconds(took)} (one thread)"
    theirs = hnswlib.Index("l2", x.shape[1])
    theirs.init_index(len(x), M=32, ef_construction=200)
    built += f", hnswlib {seconds(timed(partial(theirs.add_items, x, num_threads=2))[0])}"
    use = Index(ndim=x.shape[1], metric="l2sq", connectivity=32, expansion_add=200)
    took, _ = timed(partial(use.add, np.arange(len(x)), x, threads=2))
    built += f", usearch {seconds(took)}"
    words = e.words[:: len(e) // 50]
    ids = np.random.default_rng(3).integers(0, len(x), 2000).astype(np.uint32)
    for epsilon in (20.0, 10.0, 5.0):
        queries = noisy(x, epsilon, len(ids))
        single = queries.astype(np.float32)
        true = e.nearest(queries)[0][:, 0]

        def rate(call: Callable[[], object]) -> str:
            return f"{len(ids) / median(call, 3):,.0f}"

        plain = MultivariateLaplace(e, epsilon)
        cells = [name, f"{epsilon:g}", rate(lambda m=plain: m.privatize_ids(ids))]
        for ef in (64, 256):
            madlib = MultivariateLaplace(graph, epsilon, search="hnsw", ef=ef)
            found, law_off = quality(graph, epsilon, ef, e.ids(words))
            ours = rate(lambda m=madlib: m.privatize_ids(ids))
            theirs.set_ef(ef)
            libs = rate(lambda q=single: theirs.knn_query(q, 1, num_threads=2))
            recall = (theirs.knn_query(single, 1)[0][:, 0] == true).mean()
            use.expansion_search = ef
            uses = rate(lambda q=single: use.search(q, 1, threads=2))
            use_recall = (use.search(single, 1).keys[:, 0] == true).mean()
            row = [*cells, str(ef), ours, f"{found:.3f}", f"{law_off:.3f}"]
            row += [libs, f"{recall:.3f}", uses, f"{use_recall:.3f}"]
            print(f"| {' | '.join(row)} |", flush=True)
            cells = [""] * 3
    return built


HEAD = (
    "words × n", "ε", "exact, a second", "ef", "hnsw_rs, a second", "recall", "law off by",
    "hnswlib, a second", "recall", "usearch, a second", "recall",
)  # fmt: skip


def main() -> None:
    cells = sys.argv[1:]
    by_graphs = cells[:1] == ["--graphs"]
    if by_graphs:
        cells = cells[1:] or ["20000x50", "20000x300"]
        print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    built = []
    for cell in cells or ["20000x50", "20000x300", "100000x300"]:
        words, dim = map(int, cell.split("x"))
        e = Embedding([f"w{i}" for i in range(words)], clustered(words, dim))
        name = f"{words:,} × {dim}"
        if by_graphs:
            built.append(graphs(name, e))
        else:
            exact(name, e)
            mechanism(name, e)
    if built:
        print(f"\nGraphs of M = 32 and ef = 200, built: {'; '.join(built)}.")


if __name__ == "__main__":
    main()
