"""Small spaces."""

import numpy as np
from numpy.typing import ArrayLike

from fastdx import Embedding


def numbered(points: ArrayLike, metric: str = "euclidean") -> Embedding:
    """The words w0, w1, … at these points; on a line at these numbers."""
    rows = np.asarray(points)
    rows = rows[:, None] if rows.ndim == 1 else rows
    return Embedding([f"w{i}" for i in range(len(rows))], rows, metric=metric)


def normal(words: int, dim: int, seed: int) -> Embedding:
    """So many words at normal points."""
    return numbered(np.random.default_rng(seed).normal(size=(words, dim)))


def line(*places: float) -> Embedding:
    """The words a, b, … in one dimension."""
    return Embedding(list("abcdefghij")[: len(places)], np.array(places)[:, None])
