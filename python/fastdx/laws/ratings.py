"""SynTF (Weggenmann and Kerschbaum 2018): a word's substitute by a rating of all pairs of words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx.exceptions import ParameterError
from fastdx.laws.base import (
    Law,
    Price,
    Space,
    check_space,
    distance_matrix,
    positive,
    softmax,
)

__all__ = ["syntf"]


def syntf(space: Space, epsilon: float, ratings: ArrayLike) -> Law:
    """Return the law of one of SynTF's draws: Pr[y|w] ∝ exp(ε·rating(w, y)/(2Δ)).

    Δ, the sensitivity, is the most that the rating of an output differs between two words; it is
    computed. SynTF makes a synthetic bag of n words: n times, a word of the document is drawn by
    its frequency, and its substitute by this law. A document's output has then the law
    ``counts @ law.matrix() / counts.sum()``, and n outputs cost n·ε for *any* two documents:
    ordinary differential privacy of the bag, for a fixed n.

    The authors' own ratings (similarity of words, with their overlap in bigrams) could not be
    looked up, so they have to be given.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words; distances play no part.
    epsilon : float
        ε for any two words, positive.
    ratings : array_like of float, shape (V, V)
        How well y stands for w, in row w.

    Returns
    -------
    Law
        ε for any two words, claimed and proved; less where normalisers are alike.

    Raises
    ------
    ParameterError
        A parameter outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.laws import syntf
    >>> e = Embedding(["cat", "dog", "car"], [[0.0], [1.0], [9.0]])
    >>> law = syntf(e, 2.0, [[1.0, 0.6, 0.2], [0.6, 1.0, 0.1], [0.2, 0.1, 1.0]])
    >>> law.row(0).round(3).tolist()
    [0.487, 0.312, 0.2]
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    table = np.asarray(ratings, float)
    if table.shape != (len(space), len(space)) or not np.isfinite(table).all():
        raise ParameterError(
            f"ratings must be finite numbers of the shape ({len(space)}, {len(space)}), "
            f"got {table.shape}"
        )
    sensitivity = float((table.max(axis=0) - table.min(axis=0)).max())

    def row(word: int) -> NDArray[np.float64]:
        # Ratings that tell no two words apart may choose the output as they like.
        return softmax(epsilon / 2 * (table[word] / sensitivity if sensitivity else table[word]))

    why = "Weights and normaliser each change by a factor of at most e^(ε/2)."
    price = Price(epsilon, why)
    source = (
        "B. Weggenmann, F. Kerschbaum, SynTF: Synthetic and Differentially Private Term Frequency "
        "Vectors for Privacy-Preserving Text Mining, SIGIR 2018, arXiv:1805.00904"
    )
    return Law("SynTF", space, row, price, price, source)


def distance_ratings(space: Space) -> NDArray[np.float64]:
    """Return ratings that are the distance, negative, shape (V, V): the nearer the better."""
    return -distance_matrix(space)
