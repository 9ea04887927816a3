"""Compare hyperbolic noise, nearest words and training with numpy and gensim."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from common import median, needed, report, seconds, timed

from fastdx import Embedding, poincare
from fastdx.lab.noise import hyperbolic_laplace, hyperbolic_metropolis

SIZE = 20_000


def by_numpy(epsilon: float, n: int = 100) -> np.ndarray:
    """Draw radii by the inverse distribution function on a grid, and directions in one batch."""
    r = np.linspace(0, 1, 20_001)[1:-1]
    log = (n - 1) * np.log(r) + epsilon * np.log((1 - r) / (1 + r))
    cdf = np.cumsum(np.exp(log - log.max()))
    radius = np.interp(np.random.default_rng().random(SIZE), cdf / cdf[-1], r)
    z = np.random.default_rng().standard_normal((SIZE, n))
    return z * (radius / np.linalg.norm(z, axis=1))[:, None]


def noise() -> None:
    for epsilon in (0.125, 8.0):
        exact = partial(hyperbolic_laplace, 100, epsilon, SIZE, base="ball")
        report(f"noise, n = 100, ball, ε = {epsilon:g}, a vector (all threads)",
               median(exact) / SIZE, median(partial(by_numpy, epsilon), 3) / SIZE,
               "numpy, inverse on a grid")  # fmt: skip
    walk = partial(hyperbolic_metropolis, 100, 1.0, 40, thin=1000, burn_in=1, chains=2)
    print(f"Metropolis, n = 100: {seconds(median(walk) / 40_000)} a step (two chains at once)")


def search() -> None:
    rng = np.random.default_rng(1)
    words, dim = 82_115, 100
    x = rng.standard_normal((words, dim))
    x *= (np.tanh(rng.gamma(8.0, 0.5, words) / 2) / np.linalg.norm(x, axis=1))[:, None]
    e = Embedding([f"w{i}" for i in range(words)], x.astype(np.float32), metric="poincare")
    queries = rng.standard_normal((1000, dim))
    queries *= (np.tanh(rng.gamma(8.0, 0.5, 1000) / 2) / np.linalg.norm(queries, axis=1))[:, None]
    u = e.vectors.astype(np.float64)
    w = 1 / (1 - (u * u).sum(1))
    folded, half = u * w[:, None], w / 2

    def numpy() -> np.ndarray:
        bias = 1 + (queries * queries).sum(1)
        return (queries @ folded.T - bias[:, None] * half).argmax(1)

    e.nearest(queries[:1])
    same = (e.nearest(queries)[0][:, 0] == numpy()).mean()
    report(f"nearest on the ball, 82,115 × 100, 1000 (same {same:.4f})",
           median(partial(e.nearest, queries)), median(numpy, 2), "numpy f64, folded")  # fmt: skip


def training() -> None:
    (path,) = needed("graph/wordnet_nouns.edges.tsv")
    from gensim.models.poincare import PoincareModel

    edges = [tuple(line.split("\t")) for line in path.read_text().splitlines()]
    model = PoincareModel(edges, size=100, negative=10, burn_in=0, seed=1)
    theirs = timed(partial(model.train, epochs=1))[0] / len(edges)
    for threads in (1, 2):
        at: list[float] = []
        poincare.train(edges, 100, epochs=12, threads=threads,
                       callback=lambda _e, _l, at=at: at.append(time.perf_counter()))  # fmt: skip
        ours = (at[-1] - at[1]) / 10 / len(edges)
        report(f"training, an edge, {threads} threads ({1 / ours:,.0f} edges/s)", ours, theirs,
               "gensim")  # fmt: skip


if __name__ == "__main__":
    noise()
    search()
    training()
