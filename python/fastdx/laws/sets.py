"""CusText and CusText+ (Chen et al. 2023): every word has its own small set of outputs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fastdx.laws.base import (
    Law,
    Price,
    Space,
    check_space,
    counted,
    distance_rows,
    nearest,
    positive,
    softmax,
)

__all__ = ["custext"]

SOURCE = (
    "S. Chen, F. Mo, Y. Wang, C. Chen, J.-Y. Nie, C. Wang, J. Cui, A Customized Text Sanitization "
    "Mechanism with Differential Privacy, Findings of ACL 2023"
)


def custext(
    space: Space,
    epsilon: float,
    k: int = 20,
    *,
    partition: bool = True,
    keep: Iterable[str] = (),
) -> Law:
    """Return the law of CusText: the exponential mechanism on a set of k outputs for every word.

    Pr[y|w] ∝ exp((ε/2)·u(w, y)) on w's set, 0 elsewhere; u is 0 for the word of the set that is
    nearest to w and -1 for the farthest, linear in the distance between.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words, most frequent first, and metric.
    epsilon : float
        ε for any two words of one set, positive.
    k : int, optional
        Words of a set, from 1 to V.
    partition : bool, optional
        True: the most frequent word that has no set yet and its k - 1 nearest without one become a
        set for all of them ("conservative" in the authors' code). False: every word has its own k
        nearest ("aggressive", the code's other way), which protects nothing.
    keep : iterable of str, optional
        Stop words, RELEASED AS THEY ARE: CusText+.

    Returns
    -------
    Law
        With sets that are a partition: ε for any two words of one set, nothing between sets.

    Raises
    ------
    ParameterError
        A parameter outside its domain.
    UnknownWordError
        A word of `keep` that the vocabulary has not.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.laws import custext
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [9.0], [1.0], [10.0]])
    >>> custext(e, 1.0, 2).matrix().round(2).tolist()[0]
    [0.62, 0.0, 0.38, 0.0]
    >>> print(custext(e, 1.0, 2, partition=False).proved)
    No finite ε. ...
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    count = len(space)
    k = counted("k", k, 1, count)
    kept = np.zeros(count, bool)
    kept[space.ids(keep)] = True
    distances = distance_rows(space)
    sets = _partition(space, k) if partition else None

    def row(word: int) -> NDArray[np.float64]:
        law = np.zeros(count)
        if kept[word]:
            law[word] = 1.0
            return law
        d = distances(word)
        outputs = nearest(d, word)[:k] if sets is None else np.flatnonzero(sets == sets[word])
        far = d[outputs] - d[outputs].min()
        # Words that are all equally far away are equally likely; the original divides by 0 there.
        law[outputs] = softmax(-epsilon / 2 * (far / far.max() if far.any() else far))
        return law

    claimed = Price(
        epsilon, "Called ε-differential privacy; the definition compares only words that share "
        "their set of outputs.",
    )  # fmt: skip
    if sets is None and k < count:
        proved = Price(
            np.inf, "An output of one word's set and not of another's tells them apart for sure.",
        )  # fmt: skip
    else:
        groups = np.zeros(count, np.intp) if sets is None else sets.copy()
        groups[kept] = -1
        proved = Price(
            epsilon, "Within a set the scores lie in [-1, 0]: weights and normaliser each change "
            "by a factor of at most e^(ε/2).", groups=groups,
        )  # fmt: skip
    return Law("CusText+" if kept.any() else "CusText", space, row, claimed, proved, SOURCE)


def _partition(space: Space, k: int) -> NDArray[np.intp]:
    """Return of every word the number of its set."""
    sets = np.full(len(space), -1, np.intp)
    distances = distance_rows(space)
    number = 0
    for word in range(len(space)):
        if sets[word] < 0:
            d = np.where(sets < 0, distances(word), np.inf)
            chosen = nearest(d, word)[:k]
            sets[chosen[sets[chosen] < 0]] = number
            number += 1
    return sets
