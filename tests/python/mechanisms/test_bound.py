"""The ε·d bound by hypothesis on random vocabularies, with exact confidence intervals."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdx import MultivariateLaplace, Tem
from helpers.bounds import allowed, assert_bound
from helpers.draws import as_users_draw
from helpers.liars import LIES, Lie, tell, twice_epsilon
from helpers.spaces import numbered

vectors = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.floats(-1, 1, width=32), min_size=n, max_size=n), min_size=1, max_size=6
    )
)
epsilons = st.sampled_from([1e-3, 0.3, 1.0, 4.0, 1e3])


@settings(max_examples=40)
@given(vectors, epsilons, st.sampled_from([None, 0.0, 0.5, float("inf")]),
       st.sampled_from(["euclidean", "manhattan", "chebyshev"]))  # fmt: skip
def test_tem(rows: list[list[float]], epsilon: float, gamma: float | None, metric: str) -> None:
    e = numbered(rows, metric)
    seeded = as_users_draw(Tem(e, epsilon, gamma=gamma, seed=1))
    assert_bound(seeded, Tem(e, epsilon, gamma=gamma).guarantee)


@settings(max_examples=40)
@given(vectors, epsilons)
def test_multivariate_laplace(rows: list[list[float]], epsilon: float) -> None:
    e = numbered(rows)
    seeded = as_users_draw(MultivariateLaplace(e, epsilon, seed=1))
    assert_bound(seeded, MultivariateLaplace(e, epsilon).guarantee)


@pytest.mark.parametrize(
    ("test", "lie"),
    [*product([test_tem, test_multivariate_laplace], LIES),
     (test_multivariate_laplace, twice_epsilon)],
)  # fmt: skip
def test_liars_are_convicted(
    test: Callable[[], None], lie: Lie, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, lie)
    with pytest.raises(AssertionError, match="REFUTED"):
        test()


def test_nothing_is_compared_with_a_guarantee_that_allows_everything() -> None:
    e = numbered([[0.0], [1.0]])
    for m in (Tem(e, 1.0, seed=1), Tem(e, 1.0, sampler="gumbel")):
        with pytest.raises(AssertionError, match=r"SEEDED|comparison"):
            assert_bound(m, m.guarantee)
    skipping = Tem(e, 1.0, skip=["w0"]).guarantee
    with pytest.raises(AssertionError, match="nothing can be refuted"):
        allowed(skipping, "w0", "w1")
