"""The table of published laws by name, for `fastdx compare` and the tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from fastdx._core import Embedding
from fastdx._shared.checks import between, counted, one_of, positive
from fastdx.exceptions import ParameterError
from fastdx.lab.laws.base import Law, Space, check_line, check_space, distance_matrix
from fastdx.lab.laws.diffractor import greedy_order, one_diffractor
from fastdx.lab.laws.exponential import (
    randomized_response,
    santext,
    santext_plus,
    syntf,
)
from fastdx.lab.laws.line import truncated_laplace, vickrey
from fastdx.lab.laws.programme import blahut_arimoto, check_count, optimal
from fastdx.lab.laws.ranks import rank_based, with_neighbors, words_blending_boxes
from fastdx.lab.laws.sets import custext

Make = Callable[[float], Law]
"""A function from ε to a law."""


class Published(NamedTuple):
    """A published law that needs only words, ε and at most one other number."""

    function: Callable[..., Law]
    """The function of `fastdx.lab.laws` that makes the law."""
    prepare: Callable[[Space, float], Make]
    """Computes, from the words and the number, everything that does not depend on ε."""
    about: str
    """A phrase that describes the other parameters."""
    parameter: str = ""
    """A phrase that describes the number; empty if the law takes none."""
    default: float = 0.0
    """The default of the number."""
    epsilons: tuple[float, float] = (0.01, 1000.0)
    """The ends of a search for ε."""
    most: int | None = None
    """The most words for which the law takes less than minutes. Beyond, it is only made if its name
    is given."""


def _santext_plus(space: Space, share: float) -> Make:
    share = between("santext-plus's share of sensitive words", share, 0.0, 1.0)
    rare = max(1, round(share * len(space)))
    return lambda epsilon: santext_plus(space, epsilon, space.words[-rare:])


def _custext(space: Space, k: float, *, partition: bool) -> Make:
    size = min(counted("custext's k", int(k), 1, max(int(k), 1)), len(space))
    return lambda epsilon: custext(space, epsilon, size, partition=partition)


def _diffractor(space: Space, gamma: float, *, method: str) -> Make:
    # The line costs seconds on large vocabularies and is the same for every ε.
    order = greedy_order(space)
    return lambda epsilon: one_diffractor(
        space, epsilon, orders=[order], method=method, gamma=int(gamma)
    )


def _truncated(space: Space, _: float) -> Make:
    span = positive("the distance of the outermost words", float(np.ptp(check_line(space))))

    def make(epsilon: float) -> Law:
        if not 0 < epsilon < 0.5:
            raise ParameterError(
                f"truncated-laplace's epsilon must be above 0 and below 0.5, got {epsilon}"
            )
        bound = -span / epsilon * float(np.log1p(-2 * epsilon))
        return truncated_laplace(cast(Embedding, space), epsilon, bound)

    return make


def _blending(space: Space, safe: float) -> Make:
    size = min(int(safe), max(len(space) - 1, 1))
    return lambda epsilon: words_blending_boxes(space, epsilon, safe=size)


def _neighbours(space: Space, rate: float) -> Make:
    rate = positive("neighbours's rate", rate)
    return lambda epsilon: with_neighbors(santext(space, epsilon), rate * epsilon)


def _optimal(space: Space, gap: float) -> Make:
    check_count(len(space))
    return lambda epsilon: optimal(space, epsilon, gap=gap)


NAMES: dict[str, Published] = {
    "santext": Published(santext, lambda space, _: partial(santext, space), "all words"),
    "santext-plus": Published(
        santext_plus, _santext_plus, "the rarest words are sensitive, 1 of 5 others is replaced",
        "share of the words that are sensitive", 0.5,
    ),
    "custext": Published(
        custext, partial(_custext, partition=True), "sets that are a partition",
        "words of a set", 20,
    ),
    "custext-own": Published(
        custext, partial(_custext, partition=False), "every word its own set", "words of a set", 20,
    ),
    "diffractor": Published(
        one_diffractor, partial(_diffractor, method="geometric"), "one greedy line",
    ),
    "diffractor-tem": Published(
        one_diffractor, partial(_diffractor, method="tem"), "one greedy line",
        "places beyond which words are alike", 5,
    ),
    "vickrey-line": Published(
        vickrey, lambda space, t: partial(vickrey, cast(Embedding, space), t=t), "one dimension",
        "t", 0.5,
    ),
    "truncated-laplace": Published(
        truncated_laplace, _truncated, "one dimension, the authors' bound", epsilons=(0.01, 0.499),
    ),
    "rank-based": Published(rank_based, lambda space, _: partial(rank_based, space), "all words"),
    "words-blending-boxes": Published(
        words_blending_boxes, _blending, "20 candidates", "words left out", 4,
    ),
    "neighbours": Published(
        with_neighbors, _neighbours, "SanText, then neighbours", "rate of a rank, in ε", 0.04,
    ),
    "randomised-response": Published(
        randomized_response, lambda space, _: partial(randomized_response, space), "all words",
    ),
    "blahut-arimoto": Published(
        blahut_arimoto,
        lambda space, rounds: partial(blahut_arimoto, space, iterations=int(rounds)),
        "all words alike likely", "rounds", 30,
    ),
    "optimal": Published(
        optimal, _optimal,
        "the distance as the loss, all words alike likely; at most 300 words",
        "part of the loss that it may miss the optimum by", 0.01, (0.05, 50.0), 60,
    ),
    "syntf": Published(
        syntf, lambda space, _: partial(syntf, space, ratings=-distance_matrix(space)),
        "ratings: less the distance",
    ),
}  # fmt: skip
"""The published laws by their names on the command line."""


def by_name(name: str, space: Space) -> Make:
    """Return the function from ε to a published law, by its name in `NAMES`.

    Parameters
    ----------
    name : str
        The name, perhaps with a number after a colon: ``'custext'``, ``'custext:100'``.
    space : Embedding or WordGraph
        Words, most frequent first, and metric.

    Returns
    -------
    callable
        A function from ε to the `Law`.

    Raises
    ------
    ParameterError
        The name is unknown, or the law does not take the number.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab import laws
    >>> make = laws.by_name("custext:2", Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]]))
    >>> make(1.0).name, make(1.0).proved.unit
    ('CusText', 'any two words within each of 2 groups')
    """
    check_space(space)
    start = name.partition(":")[0]
    one_of("name", start, NAMES)
    published = NAMES[start]
    return published.prepare(space, number_of(name, published.parameter, published.default))


def number_of(name: str, parameter: str, default: float) -> float:
    """Return the number after the colon of a name, or the default."""
    start, colon, number = name.partition(":")
    if not colon:
        return default
    if not parameter:
        raise ParameterError(f"{start} takes no number, got {number!r}")
    try:
        return float(number)
    except ValueError:
        raise ParameterError(f"{start} takes a number, {parameter}, got {number!r}") from None
