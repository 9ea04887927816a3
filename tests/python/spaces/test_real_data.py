"""On real data, where ../shared is there."""

from pathlib import Path

import numpy as np

from fastdx import Embedding, MultivariateLaplace


def test_the_claim_of_wsdm20_on_glove(shared: Path) -> None:
    """MADLIB at ε=5 on GloVe 50d: about half of the words kept at worst, hundreds of outputs.

    Independently in numpy for the same words: noise, then the nearest word by f64 products.
    """
    e = Embedding.load(shared / "embeddings" / "glove.6B.50d.12k.txt")
    assert (len(e), e.dim) == (12_691, 50)
    m = MultivariateLaplace(e, 5.0, seed=1)
    words = np.arange(60) * 211
    drawn = m.privatize_ids(np.repeat(words, 1000)).reshape(60, 1000)
    unchanged = (drawn == words[:, None]).sum(1)
    distinct = np.array([len(set(row)) for row in drawn])
    # Over all 12,691 words the mean is 151 and the standard deviation 126.
    assert 90 < unchanged.mean() < 215 and 590 < distinct.mean() < 690

    rng = np.random.default_rng(2)
    u = e.vectors.astype(np.float64)
    half = (u**2).sum(1) / 2
    for w in words[::12]:
        z = rng.normal(size=(1000, 50))
        z *= (rng.gamma(50, 1 / 5.0, size=1000) / np.linalg.norm(z, axis=1))[:, None]
        kept = (np.argmax((u[w] + z) @ u.T - half, axis=1) == w).sum()
        ours = unchanged[list(words).index(w)]
        p = max((kept + ours) / 2000, 0.005)
        assert abs(int(kept) - int(ours)) < 6 * np.sqrt(2 * 1000 * p * (1 - p) + 1)
