"""Compare loading and whole mechanisms with other libraries, which `make .venv/.peers` installs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from common import median, needed, report

import fastdx
from fastdx.lab.laws import custext as custext_law


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


def published(path: Path) -> None:
    """Compare published mechanisms with PyPantera, which has most of them, a process for each."""
    try:
        from src.EmbeddingPerturbationMechanism.cmp import CMP
        from src.EmbeddingPerturbationMechanism.mahalanobis import Mahalanobis
        from src.EmbeddingPerturbationMechanism.vickrey import VickreyCMP
        from src.SamplingPerturbationMechanism.custext import CusText
        from src.SamplingPerturbationMechanism.santext import SanText
        from src.SamplingPerturbationMechanism.tem import TEM
    except ImportError as e:
        print(f"pypantera is not there ({e.name}): its rows are left out")
        return
    e = fastdx.Embedding.load(path)
    ids = np.random.default_rng(2).integers(0, len(e), 200)
    words = [e.words[i] for i in ids]
    given = {"embPath": str(path), "epsilon": 5.0}
    noises = [
        ("MultivariateLaplace", fastdx.MultivariateLaplace(e, 5.0), CMP(given)),
        ("Mahalanobis", fastdx.Mahalanobis(e, 5.0), Mahalanobis({**given, "lam": 0.2})),
        ("Vickrey", fastdx.Vickrey(e, 5.0, tuning=0.75), VickreyCMP({**given, "t": 0.75})),
    ]
    santext = fastdx.Tem(e, 5.0, gamma=float("inf"))
    custext = fastdx.FiniteLaw(law=custext_law(e, 5.0, k=20))
    laws = [
        ("Tem", fastdx.Tem(e, 5.0), TEM({**given, "beta": 1e-3})),
        ("SanText", santext, SanText(given)),
        ("CusText, sets of 20", custext, CusText({**given, "k": 20, "distance": "euclidean"})),
    ]

    def row(name: str, ours: fastdx.Mechanism, theirs: object, runs: int, call: str) -> None:
        # PyPantera caches laws of whole texts, so each run takes a new text.
        texts = iter([words[i:] + words[:i] for i in range(1, runs + 1)])

        def their() -> object:
            text = next(texts)
            process = theirs.processText  # type: ignore[attr-defined]
            return process(theirs.noisyEmb(text) if call == "noise" else text)  # type: ignore[attr-defined]

        try:
            took = median(their, runs)
        except ValueError as e:  # CusText's probabilities, for some of its draws
            print(f"{name}: pypantera fails ({e})")
            return
        report(f"{name}, 200 words of 12,691 × 50", median(lambda: ours.privatize_ids(ids)),
               took, "pypantera")  # fmt: skip

    for name, ours, theirs in noises:
        row(name, ours, theirs, 3, "noise")
    for name, ours, theirs in laws:
        row(name, ours, theirs, 1, "law")


def main() -> None:
    (path,) = needed("embeddings/glove.6B.50d.12k.txt")
    with tempfile.TemporaryDirectory() as folder:
        loading(path, Path(folder))
    drawing(path)
    published(path)


if __name__ == "__main__":
    main()
