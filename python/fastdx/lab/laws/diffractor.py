"""1-Diffractor (Meisenbacher et al. 2024) orders words in a line and adds noise to their places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Embedding, LawRows
from fastdx._shared.checks import counted, one_of, positive
from fastdx.exceptions import ParameterError
from fastdx.lab.laws.base import LOWEST, Law, Price, Space, check_space

NEIGHBORS = 64
"""The number of nearest words of each word that `greedy_order` looks up in advance."""
BATCH = 1024
"""The number of words per look-up of nearest words."""


def greedy_order(space: Space, start: int = 0) -> NDArray[np.intp]:
    """Return a line of all words: each word is followed by the nearest one not yet in the line.

    The line is exact; ties go to the smaller id. Most neighbours in the line are near each other.
    But words near each other can be far apart in the line, because skipped words come at its end.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    start : int, optional
        The id of the first word.

    Returns
    -------
    numpy.ndarray of int, shape (V,)
        The ids in their order.

    Raises
    ------
    ParameterError
        `start` is no id.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import greedy_order
    >>> greedy_order(Embedding(["a", "b", "c", "d"], [[0.0], [-3.0], [1.0], [3.0]])).tolist()
    [0, 2, 3, 1]
    """
    check_space(space)
    count = len(space)
    word = counted("start", start, 0, count - 1)
    words = space.words
    near: NDArray[np.uint32] | None = None
    if isinstance(space, Embedding) and count > NEIGHBORS:
        vectors = space.vectors
        parts = [
            space.nearest(vectors[first : first + BATCH], NEIGHBORS)[0]
            for first in range(0, count, BATCH)
        ]
        near = np.concatenate(parts)
    free = np.ones(count, bool)
    order = np.empty(count, np.intp)
    for place in range(count):
        order[place] = word
        free[word] = False
        if place + 1 == count:
            break
        if near is not None:
            left = near[word][free[near[word]]]
            if len(left):
                word = int(left[0])
                continue
        word = int(np.argmin(np.where(free, space.distances(words[word]), np.inf)))
    return order


def one_diffractor(
    space: Space,
    epsilon: float,
    *,
    orders: Sequence[ArrayLike] | None = None,
    method: str = "geometric",
    gamma: int = 5,
) -> Law:
    """Return the law of 1-Diffractor: noise on the word's place in a line of all words.

    With several lines, one of them is first drawn uniformly.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    epsilon : float
        ε per place in the line, positive.
    orders : sequence of array_like of int, shape (V,), optional
        The lines, each a permutation of the ids; by default ``[greedy_order(space)]``. The authors
        use one line for each of several embeddings.
    method : str, optional
        'geometric': Pr[place j | place i] ∝ exp(-ε·|i - j|); places beyond an end become the end.
        'tem': ∝ exp(-(ε/2)·min(|i - j|, `gamma`)); words farther than `gamma` places are as likely
        as words at `gamma`.
    gamma : int, optional
        The number of places beyond which all words are equally likely, for 'tem'; at least 0.

    Returns
    -------
    Law
        ε per place in the line; with several lines the largest distance of two words counts. In the
        metric of `space` nothing is proved, because near words can be many places apart.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain, or an order is no permutation.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import one_diffractor
    >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]])
    >>> one_diffractor(e, 0.6931471805599453).row(1).round(6).tolist()  # ln 2
    [0.333333, 0.333333, 0.333333]
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    count = len(space)
    one_of("method", method, ("geometric", "tem"))
    gamma = counted("gamma", gamma, 0, max(count, gamma))
    lines = [np.asarray(o) for o in ([greedy_order(space)] if orders is None else orders)]
    if not lines:
        raise ParameterError("orders must hold at least one order")
    for number, line in enumerate(lines):
        if line.shape != (count,) or not np.array_equal(np.sort(line), np.arange(count)):
            raise ParameterError(f"orders[{number}] must be a permutation of the {count} ids")
    places = np.empty((len(lines), count), np.intp)
    for number, line in enumerate(lines):
        places[number, line] = np.arange(count)

    far = np.arange(count)
    exponents = -epsilon / 2 * np.minimum(far, gamma) if method == "tem" else -epsilon * far
    # Two-sided geometric: (1 - a)/(1 + a)·a^|i - j| inside, a^|i - j|/(1 + a) at an end.
    end = 1.0 if method == "tem" else 1 / (1 - np.exp(-epsilon))
    row = LawRows.by_place(lines, np.exp(np.maximum(exponents, LOWEST)), end)

    def apart(word: int) -> NDArray[np.float64]:
        return np.asarray(np.abs(places - places[:, word, None]).max(axis=0), np.float64)

    unit = "place-in-line"
    why = "Log-weights change by at most ε for each place" + (
        ", and ends are post-processing." if method == "geometric" else " with the normaliser."
    )
    price = Price(epsilon, why + " Several lines are a mixture: the largest of their bounds holds.",
                  apart, unit)  # fmt: skip
    source = (
        "S. Meisenbacher, M. Chevli, F. Matthes, 1-Diffractor: Efficient and Utility-Preserving "
        "Text Obfuscation Leveraging Word-Level Metric Differential Privacy, IWSPA 2024, "
        "arXiv:2405.01678"
    )
    return Law(f"1-Diffractor, {method}", space, row, price, price, source)
