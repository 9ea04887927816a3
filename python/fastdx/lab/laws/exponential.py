"""Laws whose outputs are all words: SanText and SanText+, SynTF, and randomised response.

SanText (Yue et al. 2021) is the exponential mechanism on distances, SynTF (Weggenmann and
Kerschbaum 2018) on a rating of all pairs of words.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import LawRows
from fastdx._shared.checks import between, positive
from fastdx.exceptions import ParameterError
from fastdx.lab.laws.base import Law, Price, Space, check_space, distance_rows, softmax

MAX_EPSILON = 700.0
"""The largest ε of the computed law, because e^-709 is no normal 64-bit number."""
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


def randomized_response(space: Space, epsilon: float) -> Law:
    """Return the law of randomised response: the word itself is e^ε times as likely as any other.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words; the law does not depend on distances.
    epsilon : float
        ε for any two words, positive.

    Returns
    -------
    Law
        Claimed and proved: ε for any two words. Up to ε = 700 no smaller ε holds.

    Raises
    ------
    ParameterError
        `epsilon` lies outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import randomized_response
    >>> e = Embedding(["yes", "no"], [[0.0], [1.0]])
    >>> randomized_response(e, 1.0986122886681098).matrix().round(6).tolist()  # ln 3
    [[0.75, 0.25], [0.25, 0.75]]
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    count = len(space)
    # Computed from e^-ε: a large ε then neither overflows nor makes an output impossible.
    odds = np.exp(-min(epsilon, MAX_EPSILON))
    other = odds / (1 + (count - 1) * odds)
    row = LawRows.alike(count, 1 - (count - 1) * other, other)

    why = "Every output has one of two probabilities, and their ratio is e^ε."
    price = Price(epsilon, why)
    source = (
        "S. L. Warner, Randomized Response, Journal of the American Statistical Association 60, "
        "1965; P. Kairouz, S. Oh, P. Viswanath, Extremal Mechanisms for Local Differential "
        "Privacy, NIPS 2014"
    )
    return Law("randomised response", space, row, price, price, source)
