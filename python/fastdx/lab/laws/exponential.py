"""SanText and SanText+ (Yue et al. 2021): the exponential mechanism on all words, or on some."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fastdx.lab.laws.base import (
    Law,
    Price,
    Space,
    between,
    check_space,
    distance_rows,
    positive,
    softmax,
)

SOURCE = (
    "X. Yue, M. Du, T. Wang, Y. Li, H. Sun, S. S. M. Chow, Differential Privacy for Text "
    "Analytics via Natural Text Sanitization, Findings of ACL-IJCNLP 2021"
)


def santext(space: Space, epsilon: float) -> Law:
    """Return the law of SanText: Pr[y|w] ∝ exp(-(ε/2)·d(w, y)).

    ``Tem(space, epsilon, gamma=math.inf)`` has the same law and draws it without V² memory.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    epsilon : float
        ε per unit of distance, positive.

    Returns
    -------
    Law
        Claimed and proved: ε per unit of distance.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.lab.laws import santext
    >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]])
    >>> tem = Tem(e, 2.0, gamma=float("inf"))
    >>> bool(abs(santext(e, 2.0).row(0) - tem.probabilities("a")).max() < 1e-9)
    True
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    distances = distance_rows(space)

    def row(word: int) -> NDArray[np.float64]:
        return softmax(-epsilon / 2 * distances(word))

    why = "Weights and normaliser each change by a factor of at most e^((ε/2)·d)."
    price = Price(epsilon, why, distances, space.metric)
    return Law("SanText", space, row, price, price, SOURCE)


def santext_plus(
    space: Space, epsilon: float, sensitive: Iterable[str], *, replace: float = 0.2
) -> Law:
    """Return the law of SanText+, which replaces sensitive words always and others sometimes.

    A sensitive word becomes a sensitive word y with probability ∝ exp(-(ε/2)·d(w, y)). Another word
    is replaced in this way with probability `replace`, and is otherwise RELEASED UNCHANGED.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    epsilon : float
        ε per unit of distance, positive.
    sensitive : iterable of str
        The sensitive words, at least one. The list must be public. Never choose the rare words of
        the texts to be protected, as the authors' code does.
    replace : float, optional
        The probability of replacing a word that is not sensitive, from 0 to 1; the authors' p.

    Returns
    -------
    Law
        ε per unit of distance among the sensitive words only, unless `replace` is 1. An output that
        is not sensitive proves that the word is not sensitive.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.
    UnknownWordError
        The vocabulary lacks a sensitive word.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import santext_plus
    >>> e = Embedding(["the", "anna", "berta"], [[0.0], [1.0], [1.5]])
    >>> law = santext_plus(e, 2.0, ["anna", "berta"], replace=0.25)
    >>> round(float(law.row(0)[0]), 12), float(law.row(1)[0])
    (0.75, 0.0)
    >>> print(law.proved)
    ε = 2 per unit of euclidean distance within each of 1 groups of words; ... 1 words are NOT ...
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    replace = between("replace", replace, 0.0, 1.0)
    ids = np.unique(space.ids(sensitive)).astype(np.intp)
    if not len(ids):
        between("the number of sensitive words", 0, 1, len(space))
    distances = distance_rows(space)
    groups = np.full(len(space), -1, np.intp)
    groups[ids] = 0

    def row(word: int) -> NDArray[np.float64]:
        law = np.zeros(len(space))
        law[ids] = softmax(-epsilon / 2 * distances(word)[ids])
        if groups[word] < 0:
            law *= replace
            law[word] += 1 - replace
        return law

    claimed = Price(
        epsilon, "Utility-optimised metric LDP: for outputs that are sensitive words the log-ratio "
        "of any two words is at most ε·d + ln(1/p), p being the share of other words that are "
        "replaced.", distances, space.metric, groups,
    )  # fmt: skip
    proved = Price(
        epsilon, "Sensitive words have the exponential mechanism's law on one set of outputs.",
        distances, space.metric, None if replace == 1 else groups,
    )  # fmt: skip
    return Law("SanText+", space, row, claimed, proved, SOURCE)
