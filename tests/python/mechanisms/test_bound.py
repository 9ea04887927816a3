"""The ε·d bound by hypothesis on random vocabularies, with exact confidence intervals."""

from math import exp

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from fastdx import Embedding, Mechanism, MultivariateLaplace, Tem

DRAWS = 50_000


def intervals(counts: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson, each side wrong with probability alpha."""
    n = counts.sum()
    with np.errstate(invalid="ignore"):
        low = np.where(counts == 0, 0.0, beta.ppf(alpha, counts, n - counts + 1))
        high = np.where(counts == n, 1.0, beta.ppf(1 - alpha, counts + 1, n - counts))
    return low, high


def check(m: Mechanism) -> None:
    words = m.embedding.words
    counts = np.array([np.bincount(m.sample(w, DRAWS), minlength=len(words)) for w in words])
    low, high = intervals(counts, 1e-11)
    for i, a in enumerate(words):
        for j, b in enumerate(words):
            bound = exp(min(m.guarantee.bound(a, b) + m.guarantee.slack, 700.0))
            assert (low[i] <= bound * high[j]).all(), (m, a, b)


vectors = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.floats(-1, 1, width=32), min_size=n, max_size=n), min_size=1, max_size=6
    )
)
epsilons = st.sampled_from([1e-3, 0.3, 1.0, 4.0, 1e3])


def embedding(rows: list[list[float]], metric: str = "euclidean") -> Embedding:
    return Embedding([f"w{i}" for i in range(len(rows))], rows, metric=metric)


@settings(max_examples=40)
@given(vectors, epsilons, st.sampled_from([None, 0.0, 0.5, float("inf")]),
       st.sampled_from(["euclidean", "manhattan", "chebyshev"]))  # fmt: skip
def test_tem(rows: list[list[float]], epsilon: float, gamma: float | None, metric: str) -> None:
    check(Tem(embedding(rows, metric), epsilon, gamma=gamma, seed=1))


@settings(max_examples=40)
@given(vectors, epsilons)
def test_multivariate_laplace(rows: list[list[float]], epsilon: float) -> None:
    check(MultivariateLaplace(embedding(rows), epsilon, seed=1))


@settings(max_examples=100)
@given(vectors, epsilons, st.sampled_from([None, 0.0, 0.5, float("inf")]))
def test_the_whole_law_of_tem(rows: list[list[float]], epsilon: float, gamma: float | None) -> None:
    e = embedding(rows)
    tem = Tem(e, epsilon, gamma=gamma)
    law = np.array([tem.probabilities(w) for w in e.words])
    d = np.array([e.distances(w) for w in e.words])
    ratio = np.log(law[:, None, :] / law[None, :, :]).max(-1)
    assert (law > 0).all() and np.allclose(law.sum(1), 1)
    assert (ratio <= epsilon * d + tem.guarantee.slack + 1e-12).all()


def test_a_broken_mechanism_is_found() -> None:
    """The test has power: noise at twice the ε that is claimed breaks the bound."""
    e = embedding([[0.0], [1.0]])
    honest, liar = MultivariateLaplace(e, 1.0), MultivariateLaplace(e, 2.0, seed=1)
    counts = np.array([np.bincount(liar.sample(w, DRAWS), minlength=2) for w in e.words])
    low, high = intervals(counts, 1e-11)
    assert low[0][0] > exp(honest.guarantee.bound("w0", "w1")) * high[1][0]
