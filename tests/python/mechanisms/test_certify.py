"""The computed ε of mechanisms; that of each, for any metric: test_every_law.py."""

from math import inf

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, FiniteLaw, NeighborResponse, Tem
from fastdx.lab import audit, laws
from fastdx.lab.laws import Law
from fastdx.mechanisms import Mechanism
from helpers.bounds import allowed
from helpers.laws import distances_of, ratios_of
from helpers.spaces import line, normal, numbered


def test_the_two_ways_agree_on_many_words() -> None:
    """The search with bounds looks at few pairs, and misses none."""
    e = normal(150, 3, 1)
    distances = distances_of(e)
    for m in (Tem(e, 3.0, cover=5), NeighborResponse(e, 2.0, cover=9)):
        by_space, by_matrix = (audit.certify(m, metric=x) for x in (e, distances))
        assert isinstance(by_space, audit.LargestLoss) and isinstance(by_matrix, audit.LargestLoss)
        assert by_matrix.epsilon == pytest.approx(by_space.epsilon, rel=1e-9)
        assert by_matrix.pair == by_space.pair and by_matrix.metric == "given"
        assert by_matrix.local == pytest.approx(by_space.local, rel=1e-9)
    law = laws.one_diffractor(e, 3.0)
    np.fill_diagonal(distances, inf)
    found = audit.certify(law)
    # Of the law itself; what is drawn has no probabilities below 2⁻¹⁰⁰ of the largest.
    assert found.epsilon == pytest.approx((ratios_of(law.matrix()) / distances).max(), rel=1e-9)
    assert FiniteLaw(law=law).epsilon < 0.9 * found.epsilon


E = line(0, 1, 3)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ([[0, 1], [1, 0]], "metric must have the shape"),
        ([[0, 1, 2], [1, 0, 1], [3, 1, 0]], "from word 0 to word 2"),
        ([[0, -1, 2], [-1, 0, 1], [2, 1, 0]], "from word 0 to word 1"),
        ([[0, 1, 2], [1, 0.5, 1], [2, 1, 0]], "from word 1 to word 1"),
        ([[0, np.nan, 2], [np.nan, 0, 1], [2, 1, 0]], "nan from word 0"),
        (lambda a, b: -1.0, "not negative"),
        (Embedding(["a", "b", "x"], [[0.0], [1.0], [3.0]]), "metric"),
        (line(0, 1), "metric"),
    ],
)
@pytest.mark.parametrize("m", [Tem(E, 1.0), laws.santext(E, 1.0), laws.santext(E, 500.0)])
def test_bad_metrics(metric: object, said: str, m: Mechanism | Law) -> None:
    with pytest.raises(fastdx.ParameterError, match=said):
        audit.certify(m, metric=metric)  # type: ignore[call-overload]


def test_what_has_no_law() -> None:
    many = Embedding(["a", "b"], np.eye(2, 3))
    for metric in (None, many, [[0, 1], [1, 0]]):
        with pytest.raises(fastdx.ParameterError, match="law can be computed"):
            audit.certify(fastdx.MultivariateLaplace(many, 1.0), metric=metric)
    with pytest.raises(fastdx.InputTypeError, match="Mechanism or a Law"):
        audit.certify(np.eye(3))  # type: ignore[call-overload]


@pytest.mark.parametrize("epsilon", [5e-324, 1e-320, 3e-310, 1e307, 1.7e308])
def test_the_smallest_and_the_largest_epsilon_are_certified(epsilon: float) -> None:
    e = numbered(np.arange(9.0)[:, None] ** 2)
    tem = Tem(e, epsilon, certified=True)
    assert tem.epsilon <= epsilon <= tem.nominal < inf
    assert audit.certify(Tem(e, tem.nominal)).epsilon <= epsilon


def test_an_unknown_word_is_paid_for_where_a_certificate_is_not_about_it() -> None:
    """The price times γ/2 covers the log-ratio to an unknown word, which is drawn uniformly."""
    e = line(0, 0.1, 0.2, 3)
    for consistent in (False, True):
        tem = Tem(e, 0.5, gamma=0.4, consistent=consistent, certified=True)
        assert tem.nominal > tem.epsilon * 1.2
        unknown, known = tem.guarantee.price("xyz"), tem.guarantee.price("a")
        assert known == tem.epsilon and unknown == tem.nominal
        ratio = max(np.abs(np.log(tem.probabilities(w) * 4)).max() for w in e.words)
        assert ratio <= unknown * tem.gamma / 2 <= allowed(tem.guarantee, "xyz", "a")
        assert tem.guarantee.price("a xyz b xyz") == 2 * known + (1 if consistent else 2) * unknown
