"""Compare closed forms, simulation and certificates with blocked numpy. Needs ../shared/data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from common import flat_index, needed, report, timed

from fastdx import Embedding, MultivariateLaplace, Tem, calibration
from fastdx.lab import audit

BLOCK = 500


def weights(x: np.ndarray, tem: Tem) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Compute distances and weights in blocks of rows by matrix products."""
    norms = (x * x).sum(1)
    for start in range(0, len(x), BLOCK):
        rows = x[start : start + BLOCK]
        d = norms[start : start + BLOCK, None] + norms - 2 * (rows @ x.T)
        np.sqrt(np.maximum(d, 0, out=d), out=d)
        w = np.exp(-tem.nominal / 2 * np.minimum(d, tem.gamma))
        yield start, d, w


def closed_forms(e: Embedding) -> None:
    x = e.vectors[:20_000].astype(np.float64)
    tem = Tem(Embedding(e.words[:20_000], x), 3.0)

    def by_numpy() -> tuple[np.ndarray, np.ndarray]:
        unchanged, outputs = [], []
        for _, _, w in weights(x, tem):
            z = w.sum(1)
            unchanged.append(1 / z)
            w.sort(axis=1)
            mass = np.cumsum(w[:, ::-1], axis=1)
            outputs.append((mass < 0.95 * z[:, None]).sum(1) + 1)
        return np.concatenate(unchanged), np.concatenate(outputs)

    ours, table = timed(lambda: calibration.statistics(tem, inputs=False))
    theirs, (n, s) = timed(by_numpy)
    assert np.allclose(table["N_w"], n) and np.abs(table["support"].astype(int) - s).max() <= 1
    report("N_w, support and entropies of 20,000 × 50, all words", ours, theirs, "numpy in blocks")


def simulation(e: Embedding) -> None:
    x = e.vectors[:20_000]
    embedding = Embedding(e.words[:20_000], x)
    m = MultivariateLaplace(embedding, 8.0)
    words, draws = embedding.words[:10_000], 1000
    ours, _ = timed(lambda: calibration.statistics(m, words, draws))
    rng = np.random.default_rng(0)
    index = flat_index(x)

    def noisy(word: int) -> np.ndarray:
        z = rng.standard_normal((draws, 50))
        z *= (rng.gamma(50, 1 / 8.0, draws) / np.linalg.norm(z, axis=1))[:, None]
        return (x[word] + z).astype(np.float32)

    half = (x.astype(np.float64) ** 2).sum(1) / 2

    def by_numpy(word: int) -> np.ndarray:
        return (noisy(word) @ x.T - half.astype(np.float32)).argmax(1)

    some = range(0, 10_000, 250)
    with_faiss, _ = timed(lambda: [len(np.unique(index.search(noisy(w), 1)[1])) for w in some])
    with_numpy, _ = timed(lambda: [len(np.unique(by_numpy(w))) for w in some])
    scale = len(words) / len(some)
    report("10 million draws, MultivariateLaplace, 20,000 × 50", ours,
           min(with_faiss, with_numpy) * scale, "the faster of numpy and faiss")  # fmt: skip


def certificates(name: str, e: Embedding) -> None:
    x, tem = e.vectors.astype(np.float64), Tem(e, 3.0)

    def by_numpy() -> float:
        log_z = np.concatenate([np.log(w.sum(1)) for _, _, w in weights(x, tem)])
        worst = 0.0
        for start, d, _ in weights(x, tem):
            rows = np.arange(start, start + len(d))
            loss = tem.nominal / 2 * np.minimum(d, tem.gamma)
            loss += np.abs(log_z[rows, None] - log_z)
            d[np.arange(len(d)), rows] = np.inf
            worst = max(worst, float((loss / d).max()))
        return worst

    ours, certificate = timed(lambda: audit.certify(tem))
    theirs, worst = timed(by_numpy)
    print(f"  {certificate!r}, numpy {worst:.4f}")
    report(f"certificate, all pairs of {name}", ours, theirs, "numpy in blocks")


def other_metrics(name: str, e: Embedding) -> None:
    """Certify the words under the angular and Poincaré metrics, and compare with Euclidean."""
    longest = np.linalg.norm(e.vectors, axis=1).max()
    euclidean, _ = timed(lambda: audit.certify(Tem(e, 3.0)))
    for metric, scale in (("angular", 1.0), ("poincare", 0.95 / longest)):
        tem = Tem(Embedding(e.words, e.vectors * scale, metric=metric), 10.0)
        ours, certificate = timed(lambda tem=tem: audit.certify(tem))
        print(f"  {certificate!r}")
        report(f"certificate, {metric}, {name}", ours, euclidean, "euclidean")


def main() -> None:
    (vocabulary,) = needed("embeddings/minilm-40k.vocab")
    vectors = vocabulary.parent
    e = Embedding.load(vectors / "minilm-40k-50d.npy", vocabulary=vocabulary)
    closed_forms(e)
    simulation(e)
    certificates("12,691 × 50", Embedding.load(vectors / "glove.6B.50d.12k.txt"))
    e = Embedding.load(vectors / "minilm-40k-300d.npy", vocabulary=vocabulary)
    certificates("40,000 × 300", e)
    other_metrics("40,000 × 300", e)


if __name__ == "__main__":
    main()
