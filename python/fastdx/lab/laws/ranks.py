"""Laws that depend on ranks: the nearest word, the second nearest, and so on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastdx._core import LawRows, nearest_words
from fastdx._shared.checks import counted, positive
from fastdx.lab.laws.base import Law, Price, Space, check_size, check_space, distance_rows, softmax


def rank_based(space: Space, epsilon: float) -> Law:
    """Return the exponential mechanism on ranks: Pr[y|w] ∝ exp(-ε·rank(w, y)/(V - 1)).

    rank(w, y) is 0 for w itself, 1 for its nearest word, and so on, ties by id. The textbook proof
    of the exponential mechanism gives twice the range of the exponent, one half of it for the
    normaliser. Here the normaliser is the same for every word, because the ranks are always
    0, …, V - 1.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    epsilon : float
        ε for any two words, positive.

    Returns
    -------
    Law
        Proved: ε for any two words. Claimed: 2ε, as by the textbook proof.

    Raises
    ------
    ParameterError
        `epsilon` lies outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import rank_based
    >>> law = rank_based(Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]]), 2.0)
    >>> law.proved.epsilon, law.claimed.epsilon
    (2.0, 4.0)
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    count = len(space)
    by_rank = softmax(-epsilon * np.arange(count) / max(count - 1, 1))
    row = LawRows.by_rank(space, by_rank)
    claimed = Price(2 * epsilon, "The exponential mechanism with a score of sensitivity 1.")
    proved = Price(epsilon, "The normaliser is the same for every word, so only weights change.")
    source = "F. McSherry, K. Talwar, Mechanism Design via Differential Privacy, FOCS 2007"
    return Law("rank-based", space, row, claimed, proved, source)


def words_blending_boxes(
    space: Space, epsilon: float, *, safe: int = 4, candidates: int = 20
) -> Law:
    """Return the law of Words Blending Boxes: a word never becomes itself or one of its nearest.

    The `safe` nearest words of w (w itself is the first) are left out. From the next `candidates`
    words y is drawn with probability ∝ exp((ε/2)·u), u = 1/(1 + exp(z)). Here z is the distance
    from w, minus the candidates' mean, divided by their standard deviation.

    The authors' published code multiplies the scores by ε/2 and then normalises them, so ε has no
    effect. This function has ε in the exponent, as their description says.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    epsilon : float
        The claimed ε, positive.
    safe : int, optional
        The number of words left out, from 1 to V - 1; the authors' k.
    candidates : int, optional
        The number of words to draw from, at least 1; the authors' n. In a small vocabulary, all
        remaining words.

    Returns
    -------
    Law
        Claimed: ε for any two words. Proved: nothing.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain, or the vocabulary has one word.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import words_blending_boxes
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [1.0], [3.0], [7.0]])
    >>> words_blending_boxes(e, 1.0, safe=2, candidates=2).row(0).round(2).tolist()
    [0.0, 0.0, 0.56, 0.44]
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    count = len(space)
    safe = counted("safe", safe, 1, count - 1)
    candidates = min(counted("candidates", candidates, 1, max(count, candidates)), count - safe)
    distances = distance_rows(space)

    def row(word: int) -> NDArray[np.float64]:
        d = distances(word)
        chosen = nearest_words(space, word, safe + candidates)[safe:]
        spread = d[chosen].std()
        z = np.zeros(len(chosen))
        if spread > 0:
            z = (d[chosen] - d[chosen].mean()) / spread
        law = np.zeros(count)
        law[chosen] = softmax(epsilon / 2 / (1 + np.exp(z.astype(np.float64))))
        return law

    claimed = Price(epsilon, "The exponential mechanism with a score of sensitivity 1.")
    proved = Price(np.inf, "A word that is never its own output is told apart from every word "
                   "whose output it can be.")  # fmt: skip
    source = (
        "F. L. De Faveri, G. Faggioli, N. Ferro, Words Blending Boxes. Obfuscating Queries in "
        "Information Retrieval using Differential Privacy, 2024, arXiv:2405.09306"
    )
    return Law("Words Blending Boxes", space, row, claimed, proved, source)


def with_neighbors(law: Law, rate: float) -> Law:
    """Return a law whose outputs are then replaced by neighbours; post-processing costs no privacy.

    An output x becomes y with probability ∝ exp(-rate·rank(x, y)). rank(x, y) is 0 for x itself, 1
    for its nearest word, and so on, ties by id. Asghar et al. propose this against noise that
    returns either the word itself or an unrelated one. Their rate is c·ε, with c = 0.04 in their
    figures. To draw y, draw a rank (a truncated geometric variate) and take the word of that rank.

    Parameters
    ----------
    law : Law
        Any law.
    rate : float
        The decrease of the exponent per rank, positive.

    Returns
    -------
    Law
        The new law, with the claimed and proved guarantees of the given one.

    Raises
    ------
    ParameterError
        `rate` lies outside its domain.
    TooLargeError
        The weights of all words need more than 8 GiB.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import largest_loss, santext, with_neighbors
    >>> law = santext(Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]]), 2.0)
    >>> largest_loss(with_neighbors(law, 0.5).matrix()) < largest_loss(law.matrix())
    True
    """
    rate = positive("rate", rate)
    count = len(law.space)
    check_size(count)
    by_rank = LawRows.by_rank(law.space, softmax(-rate * np.arange(count)))
    weights: list[NDArray[np.float64]] = []

    def row(word: int) -> NDArray[np.float64]:
        if not weights:
            kernel = np.empty((count, count))
            for x in range(count):
                kernel[x] = by_rank(x)
            weights.append(kernel)
        return np.asarray(law.row(word) @ weights[0])

    source = (
        "H. J. Asghar, R. Carpentier, B. Z. H. Zhao, D. Kaafar, d_X-Privacy for Text and the Curse "
        "of Dimensionality, PoPETs 2026, arXiv:2411.13784"
    )
    name = f"{law.name}, then neighbours"
    return Law(name, law.space, row, law.claimed, law.proved, f"{law.source}; {source}")
