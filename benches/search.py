"""Compare nearest-word search with faiss and numpy, on random vectors in clusters."""

from __future__ import annotations

from functools import partial

import numpy as np
from common import embedding, flat_index, median, report
from numpy.typing import NDArray

from fastdx import Embedding, MultivariateLaplace


def noisy(x: NDArray[np.float32], epsilon: float, count: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    z = rng.standard_normal((count, x.shape[1]))
    z *= (rng.gamma(x.shape[1], 1 / epsilon, count) / np.linalg.norm(z, axis=1))[:, None]
    return x[rng.integers(0, len(x), count)] + z


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


def main() -> None:
    for words, dim in ((20_000, 50), (20_000, 300), (100_000, 300)):
        e, name = embedding(words, dim), f"{words:,} × {dim}"
        exact(name, e)
        mechanism(name, e)


if __name__ == "__main__":
    main()
