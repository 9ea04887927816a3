"""Certificates against brute force, and audits that convict liars and acquit ours."""

import os
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import fastdx
from fastdx import Embedding, MultivariateLaplace, Tem
from fastdx._core import binomial_bounds
from fastdx.lab import audit
from helpers import SHARED, liars
from helpers.bounds import slack
from helpers.draws import as_users_draw
from helpers.laws import loss_of
from helpers.spaces import line, numbered

# `make test-bounds` sets it: more words, more draws.
LONG = int(os.environ.get("FASTDX_TEST_FACTOR", "1"))
ALPHA = 1e-6


def vocabulary(words: int, dim: int, seed: int, metric: str = "euclidean") -> Embedding:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((words, dim))
    if metric == "poincare":
        x *= rng.uniform(0, 0.95, (words, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    return numbered(x, metric)


@given(
    st.integers(2, 60),
    st.integers(1, 6),
    st.sampled_from(["euclidean", "manhattan", "chebyshev", "angular", "poincare"]),
    st.sampled_from([0.01, 0.5, 2.0, 10.0, 300.0]),
    st.sampled_from([None, 0.0, 0.7, 2.0, np.inf]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=80 * LONG)
def test_certificates_equal_brute_force(
    words: int, dim: int, metric: str, epsilon: float, gamma: float | None, seed: int
) -> None:
    e = vocabulary(words, max(dim, 2) if metric == "angular" else dim, seed, metric)
    tem = Tem(e, epsilon, gamma=gamma)
    found = audit.certify(tem)
    expected = loss_of(tem)
    # The integers' rounding, per unit of distance.
    near = min(d for w in e.words for d in e.distances(w) if d > 0)
    assert found.epsilon <= epsilon * (1 + 1e-9)
    assert found.epsilon == pytest.approx(expected, rel=1e-9, abs=4 * slack(tem.guarantee) / near)


def test_the_measured_anchors() -> None:
    path = SHARED / "embeddings" / "glove.6B.50d.12k.txt"
    if not path.exists():
        pytest.skip("no ../shared/data")
    loaded = Embedding.load(path)
    # Measured with all words as outputs, so each has a name that a text can hold.
    e = numbered(loaded.vectors)
    for nominal, measured in ((2.0, 1.535), (5.0, 3.196), (10.0, 5.419)):
        assert audit.certify(Tem(e, nominal)).epsilon == pytest.approx(measured, abs=6e-4)


def test_a_certified_mechanism_costs_what_it_says() -> None:
    e = vocabulary(200, 8, 3)
    tem = Tem(e, 1.0, certified=True)
    assert tem.epsilon <= 1.0 < tem.nominal <= 2.0
    assert tem.epsilon > 0.999 * 1.0 or tem.nominal == 2.0
    assert loss_of(tem) <= 1.0 + 1e-6
    guarantee = tem.guarantee
    assert guarantee.epsilon == tem.epsilon
    certificate = guarantee.certificate
    assert certificate is not None and certificate.nominal == tem.nominal
    assert "public" in str(guarantee) and certificate.vocabulary in str(guarantee)
    assert guarantee.bound("w1", "w2") == pytest.approx(tem.epsilon * e.distance("w1", "w2"))
    # Where γ binds, much more may cost nothing.
    bounded = Tem(e, 0.5, gamma=0.1, certified=True)
    assert bounded.nominal > 2 and 0.49 < bounded.epsilon <= 0.5


def test_exact_bounds_are_clopper_pearson() -> None:
    for draws, hits in ((1000, [0, 1, 7, 500, 999, 1000]), (1_000_000, [0, 1, 2, 5, 400_000]),
                        (200_000, [2, 199_999]), (1, [0, 1]), (2, [1])):  # fmt: skip
        for alpha in (0.01, 1e-7):
            low, high = binomial_bounds(np.array(hits), draws, alpha)
            for h, a, b in zip(hits, low, high, strict=True):
                exact_low = stats.beta.ppf(alpha, h, draws - h + 1) if h else 0.0
                exact_high = stats.beta.isf(alpha, h + 1, draws - h) if h < draws else 1.0
                assert a == pytest.approx(exact_low, rel=1e-7) and a <= exact_low * (1 + 1e-9)
                assert b == pytest.approx(exact_high, rel=1e-7) and b >= exact_high * (1 - 1e-9)
    with pytest.raises(fastdx.ParameterError, match="hits"):
        binomial_bounds([11], 10, 0.01)


def pairs_of(e: Embedding, count: int = 6) -> list[tuple[str, str]]:
    """Near and far pairs."""
    rows = {w: e.distances(w) for w in e.words}
    pairs = sorted(combinations(e.words, 2), key=lambda p: rows[p[0]][e.ids([p[1]])[0]])
    return [*pairs[:count], *pairs[-count:]]


class TestLiars:
    """Each is convicted; the honest mechanism of the same shape is not."""

    def test_wrong_bottom(self) -> None:
        # A crowd, one word just within γ of it and one just beyond: near words, lists of very
        # different lengths.
        x = np.concatenate([np.linspace(-0.004, 0.004, 40), [0.99, 1.01]])[:, None]
        e = numbered(x)
        pairs = [("w40", "w41"), ("w0", "w40"), ("w0", "w1")]
        liar = liars.wrong_bottom(e, 2.0, 1.0, 1)
        assert audit.likelihood_ratio(liar, pairs, e, 2.0).violated
        honest = as_users_draw(Tem(e, 2.0, gamma=1.0, seed=1))
        assert not audit.likelihood_ratio(honest.sample, pairs, e, 2.0).violated

    def test_missing_neighbours(self) -> None:
        e = vocabulary(30, 2, 5)
        liar = liars.missing_neighbours(e, 3.0, 2.0, 1)
        report = audit.likelihood_ratio(liar, pairs_of(e), e, 3.0)
        assert report.violated and report.epsilon_lower_bound > 3.0
        assert "REFUTED" in str(report)
        honest = as_users_draw(Tem(e, 3.0, gamma=2.0, seed=2))
        report = audit.likelihood_ratio(honest.sample, pairs_of(e), e, 3.0)
        assert not report.violated and "not refuted" in str(report)

    def test_a_radius_from_exponential(self) -> None:
        e = vocabulary(8, 5, 7)
        liar = liars.exponential_radius(e, 1.0, seed=4)
        assert audit.likelihood_ratio(liar, pairs_of(e), e, 1.0).violated
        honest = as_users_draw(MultivariateLaplace(e, 1.0, seed=4))
        assert not audit.likelihood_ratio(honest.sample, pairs_of(e), e, 1.0).violated

    def test_unknown_words_released_raw(self) -> None:
        e = vocabulary(10, 2, 8)
        tem = Tem(e, 1.0, seed=5)
        liar = liars.raw_unknown(tem)

        def distance(a: str, b: str) -> float:
            if a in e and b in e:
                return e.distance(a, b)
            # Unknown words are alike, and half of γ from the others (Guarantee.bound).
            return 0.0 if a not in e and b not in e else tem.gamma / 2

        pairs = [("secret", "w1"), ("secret", "other secret"), ("w1", "w2")]
        report = audit.likelihood_ratio(liar, pairs, distance, 1.0, 20_000)
        assert report.violated and report.worst[0].word in ("secret", "other secret")

        def honest(word: str, size: int) -> list[str]:
            return tem.privatize_tokens([word] * size)

        assert not audit.likelihood_ratio(honest, pairs, distance, 1.0, 20_000).violated


def randomised_response(seed: int, keep: float) -> Callable[[str, int], NDArray[np.int64]]:
    """Keep "a" and "b" with a probability, else exchange them."""
    rng = np.random.default_rng(seed)

    def sample(word: str, size: int) -> NDArray[np.int64]:
        same = rng.random(size) < keep
        return np.where(same == (word == "a"), 0, 1)

    return sample


def test_a_small_excess_is_found() -> None:
    """An excess of 5% over e^(ε·d) on a chosen pair, with probability 0.99."""
    e = line(0, 1)
    epsilon, draws = 1.0, 400_000
    found = 0
    for seed in range(100):
        # 5% above the bound.
        keep = 1.05 * np.e / (1 + 1.05 * np.e)
        sample = randomised_response(seed, keep)
        report = audit.likelihood_ratio(sample, [("a", "b")], e, epsilon, draws)
        found += report.violated
    # At 0.99 fewer than 93 of 100 have a probability below 1e-4.
    assert found >= 93


def test_true_claims_are_refuted_as_seldom_as_stated() -> None:
    e = line(0, 1)
    keep = np.e / (1 + np.e)
    refuted = 0
    for seed in range(2_000):
        # The claim holds with equality: the hardest true one.
        sample = randomised_response(seed, keep)
        refuted += audit.likelihood_ratio(sample, [("a", "b")], e, 1.0, 1_000, 0.9).violated
    assert stats.binomtest(refuted, 2_000, 0.1, alternative="greater").pvalue > ALPHA


@pytest.mark.parametrize(("outputs", "events"), [(400, 1), (100, 60)])
def test_chosen_events_are_tested_on_other_draws_and_for_their_number(
    outputs: int, events: int
) -> None:
    """Some of many equal outputs exceed in any draws."""
    e, refuted = line(0, 1), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)

        def sample(_: str, size: int, rng: np.random.Generator = rng) -> NDArray[np.int64]:
            return rng.integers(outputs, size=size)

        report = audit.likelihood_ratio(sample, [("a", "b")], e, 0.0, 1_000, 0.9, events=events)
        refuted += report.violated
    assert stats.binomtest(refuted, 200, 0.1, alternative="greater").pvalue > ALPHA


def test_an_excess_spread_over_many_outputs_is_found() -> None:
    """No single output is drawn often enough to show it."""
    e, half = line(0, 1), 3000
    rng = np.random.default_rng(1)

    def sample(word: str, size: int) -> NDArray[np.int64]:
        first = rng.random(size) < (0.75 if word == "a" else 0.25)
        return np.where(first, 0, half) + rng.integers(half, size=size)

    report = audit.likelihood_ratio(sample, [("a", "b")], e, 0.5, 10_000)
    assert report.violated and report.worst[0].size > 100


def test_the_slack_is_allowed() -> None:
    e = line(0, 1)
    for more, violated in ((0.3, True), (0.6, False)):
        sample = randomised_response(1, np.exp(1.5) / (1 + np.exp(1.5)))
        report = audit.likelihood_ratio(sample, [("a", "b")], e, 1.0, slack=more)
        assert report.violated == violated


def test_bad_audits_are_refused() -> None:
    e = vocabulary(3, 2, 1)
    sample = Tem(e, 1.0).sample
    for wrong in (
        {"pairs": []},
        {"pairs": [("w0", "w0")]},
        {"epsilon": -1.0},
        *({name: value} for name in ("epsilon", "slack") for value in (np.nan, np.inf, -np.inf)),
        {"slack": -1e-9},
        {"slack": Tem(e, 1.0, seed=1).guarantee.slack},
        {"confidence": 1.0},
        {"draws": 1},
        {"events": 0},
    ):
        arguments = {"pairs": [("w0", "w1")], "distance": e, "epsilon": 1.0} | wrong
        with pytest.raises(fastdx.ParameterError, match=next(iter(wrong))):
            audit.likelihood_ratio(sample, **arguments)  # type: ignore[arg-type]
    with pytest.raises(fastdx.ParameterError, match=r"returned|must return"):
        audit.likelihood_ratio(lambda w, n: [1, 2], [("w0", "w1")], e, 1.0, 100)
    for d, epsilon in ((-1.0, 1.0), (np.nan, 1.0), (np.inf, 1.0), (np.inf, 0.0), (1e200, 1e200)):
        with pytest.raises(fastdx.ParameterError, match=r"pairs\[1\].*distance"):
            audit.likelihood_ratio(
                sample,
                [("w0", "w1"), ("w1", "w2")],
                lambda a, b, d=d: d if "w2" in (a, b) else 1.0,  # type: ignore[misc]
                epsilon,
                100,
            )
    with pytest.raises(fastdx.ParameterError, match="metric"):
        audit.certify(Tem(e, 1.0), metric=np.where(np.eye(3), 0.0, np.inf))
