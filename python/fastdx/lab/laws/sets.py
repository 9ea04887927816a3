"""CusText and CusText+ (Chen et al. 2023): every word has its own small set of outputs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fastdx._core import LawRows, partition_words
from fastdx._shared.checks import counted, positive
from fastdx.lab.laws.base import Law, Price, Space, check_space

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

    Pr[y|w] ∝ exp((ε/2)·u(w, y)) on the set of w, and 0 elsewhere. The score u is 0 for the nearest
    word of the set and -1 for the farthest, and linear in the distance from w.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words, most frequent first, and metric.
    epsilon : float
        ε for any two words of one set, positive.
    k : int, optional
        The number of words in a set, from 1 to V.
    partition : bool, optional
        True: the sets partition the words ("conservative" in the authors' code). The most frequent
        word without a set forms one with the k - 1 nearest words that have none, and so on.
        False: every word has its own k nearest words ("aggressive" in that code), which protects
        nothing.
    keep : iterable of str, optional
        Stop words that are RELEASED UNCHANGED, as in CusText+.

    Returns
    -------
    Law
        With a partition: ε for any two words of one set, and no guarantee between sets.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.
    UnknownWordError
        The vocabulary lacks a word of `keep`.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import custext
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
    kept = space.ids(keep)
    sets = partition_words(space, k) if partition else None
    row = (
        LawRows.in_nearest(space, epsilon, k, kept)
        if sets is None
        else LawRows.in_sets(space, epsilon, sets, kept)
    )

    claimed = Price(
        epsilon, "Called ε-differential privacy; the definition compares only words that share "
        "their set of outputs.",
    )  # fmt: skip
    if sets is None and k < count:
        proved = Price(
            np.inf, "An output of one word's set and not of another's tells them apart for sure.",
        )  # fmt: skip
    else:
        groups = np.zeros(count, np.intp) if sets is None else sets.astype(np.intp)
        groups[kept] = -1
        proved = Price(
            epsilon, "Within a set the scores lie in [-1, 0]: weights and normaliser each change "
            "by a factor of at most e^(ε/2).", groups=groups,
        )  # fmt: skip
    return Law("CusText+" if len(kept) else "CusText", space, row, claimed, proved, SOURCE)
