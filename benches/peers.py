"""Loading and whole mechanisms beside their peers, in one run. `make bench` installs them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from common import SHARED, median, report

import fastdx


def glove(folder: Path) -> Path:
    real = SHARED / "embeddings" / "glove.6B.50d.12k.txt"
    if real.is_file():
        return real
    print("../shared is not there: random vectors instead of GloVe")
    rng = np.random.default_rng(0)
    path = folder / "random.txt"
    with path.open("w") as out:
        for i, row in enumerate(rng.normal(size=(12_691, 50)).astype(np.float32)):
            out.write(f"w{i} " + " ".join(f"{x:.5f}" for x in row) + "\n")
    return path


def loading(path: Path, folder: Path) -> None:
    from gensim.models import KeyedVectors

    def theirs() -> object:
        return KeyedVectors.load_word2vec_format(str(path), no_header=True)

    report("load GloVe text, 12,691 × 50", median(lambda: fastdx.Embedding.load(path)),
           median(theirs, 3), "gensim")  # fmt: skip
    kv = theirs()
    binary = folder / "e.bin"
    kv.save_word2vec_format(str(binary), binary=True)  # type: ignore[attr-defined]
    report("load word2vec binary", median(lambda: fastdx.Embedding.load(binary)),
           median(lambda: KeyedVectors.load_word2vec_format(str(binary), binary=True), 3),
           "gensim")  # fmt: skip


def drawing(path: Path) -> None:
    e = fastdx.Embedding.load(path)
    u = e.vectors.astype(np.float64)
    rng = np.random.default_rng(1)
    ids = rng.integers(0, len(e), 2000)
    half = (u**2).sum(1) / 2

    def laplace() -> np.ndarray:
        z = rng.normal(size=(len(ids), e.dim))
        z *= (rng.gamma(e.dim, 0.2, len(ids)) / np.linalg.norm(z, axis=1))[:, None]
        return np.argmax((u[ids] + z) @ u.T - half, axis=1)

    def tem() -> list[int]:
        out = []
        for i in ids[:200]:
            score = -np.minimum(np.linalg.norm(u - u[i], axis=1), mechanism.gamma)
            out.append(int(np.argmax(score + rng.gumbel(scale=2 / 5.0, size=len(u)))))
        return out

    madlib, mechanism = fastdx.MultivariateLaplace(e, 5.0), fastdx.Tem(e, 5.0)
    report("MADLIB, 2,000 words of 12,691 × 50", median(lambda: madlib.privatize_ids(ids)),
           median(laplace), "numpy ")  # fmt: skip
    report("TEM, 200 words of 12,691 × 50", median(lambda: mechanism.privatize_ids(ids[:200])),
           median(tem, 3), "numpy ")  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = glove(Path(folder))
        loading(path, Path(folder))
        drawing(path)


if __name__ == "__main__":
    main()
