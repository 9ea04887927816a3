"""SynTF (Weggenmann and Kerschbaum 2018) draws a substitute by a rating of all pairs of words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx.exceptions import ParameterError
from fastdx.lab.laws.base import (
    Law,
    Price,
    Space,
    check_space,
    distance_matrix,
    positive,
    softmax,
)


def syntf(space: Space, epsilon: float, ratings: ArrayLike) -> Law:
    """Return the law of one draw of SynTF: Pr[y|w] ∝ exp(ε·rating(w, y)/(2Δ)).

    Δ, the sensitivity, is the largest difference of an output's rating between two words; the
    function computes it. SynTF makes a synthetic bag of n words. It draws n times a word of the
    document by its frequency, and a substitute for it by this law. So an output has the law
    ``counts @ law.matrix() / counts.sum()``, and n outputs have n·ε for *any* two documents. This
    is ordinary differential privacy of the bag, for a fixed n.

    The authors' own ratings (similarity of words, combined with overlap in bigrams) were not
    available to us, so the caller gives the ratings.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words; the law does not depend on distances.
    epsilon : float
        ε for any two words, positive.
    ratings : array_like of float, shape (V, V)
        The rating of y as a substitute of w, in row w.

    Returns
    -------
    Law
        Claimed and proved: ε for any two words. The true ε is smaller if normalisers are alike.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import syntf
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
        # With sensitivity 0 all words have one law, so no scale is needed.
        return softmax(epsilon / 2 * (table[word] / sensitivity if sensitivity else table[word]))

    why = "Weights and normaliser each change by a factor of at most e^(ε/2)."
    price = Price(epsilon, why)
    source = (
        "B. Weggenmann, F. Kerschbaum, SynTF: Synthetic and Differentially Private Term Frequency "
        "Vectors for Privacy-Preserving Text Mining, SIGIR 2018, arXiv:1805.00904"
    )
    return Law("SynTF", space, row, price, price, source)


def distance_ratings(space: Space) -> NDArray[np.float64]:
    """Return the negative distances as ratings, shape (V, V)."""
    return -distance_matrix(space)
