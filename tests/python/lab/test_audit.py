"""Certificates against brute force, and audits that convict liars and acquit ours."""

import os
from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import fastdx
from fastdx import (
    Embedding,
    FiniteLaw,
    Mechanism,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
)
from fastdx._core import binomial_bounds
from fastdx.lab import audit, laws
from fastdx.lab.laws import Law
from helpers import SHARED, liars
from helpers.bounds import allowed, slack
from helpers.draws import as_users_draw
from helpers.laws import distances_of, loss_of, ratios_of
from helpers.spaces import line, normal, numbered

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


def test_the_loss_of_any_two_words_is_that_of_all_outputs() -> None:
    # More words than are looked at together, and the largest loss behind them.
    law = np.random.default_rng(3).uniform(1, 2, (300, 300))
    law[7, 290] = 9
    logs = np.log(law / law.sum(axis=1, keepdims=True))
    made = FiniteLaw(numbered(np.arange(300)), law)
    assert made.local == pytest.approx(np.ptp(logs, axis=0).max(), rel=1e-9)


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


# One word just within γ of a crowd, one just beyond: near words, lists of very different lengths.
CROWD = numbered([*np.linspace(-0.004, 0.004, 40), 0.99, 1.01])
PLANE, FEW = vocabulary(30, 2, 5), vocabulary(8, 5, 7)


@pytest.mark.parametrize(
    ("liar", "honest", "pairs"),
    [
        (liars.wrong_bottom(CROWD, 2.0, 1.0, 1), Tem(CROWD, 2.0, gamma=1.0, seed=1),
         [("w40", "w41"), ("w0", "w40"), ("w0", "w1")]),
        (liars.missing_neighbours(PLANE, 3.0, 2.0, 1), Tem(PLANE, 3.0, gamma=2.0, seed=2),
         pairs_of(PLANE)),
        (liars.exponential_radius(FEW, 1.0, seed=4), MultivariateLaplace(FEW, 1.0, seed=4),
         pairs_of(FEW)),
    ],
    ids=["wrong bottom", "missing neighbours", "a radius from Exponential"],
)  # fmt: skip
def test_a_liar_is_convicted_and_the_honest_mechanism_of_its_shape_is_not(
    liar: liars.Sample, honest: Mechanism, pairs: list[tuple[str, str]]
) -> None:
    e, epsilon = honest.space, honest.epsilon
    report = audit.likelihood_ratio(liar, pairs, e, epsilon)
    assert report.violated and report.epsilon_lower_bound > epsilon and "REFUTED" in str(report)
    report = audit.likelihood_ratio(as_users_draw(honest).sample, pairs, e, epsilon)
    assert not report.violated and "not refuted" in str(report)


def test_unknown_words_released_raw_are_convicted() -> None:
    e = vocabulary(10, 2, 8)
    tem = Tem(e, 1.0, seed=5)

    def distance(a: str, b: str) -> float:
        if a in e and b in e:
            return e.distance(a, b)
        # Unknown words are alike, and half of γ from the others (Guarantee.bound).
        return 0.0 if a not in e and b not in e else tem.gamma / 2

    pairs = [("secret", "w1"), ("secret", "other secret"), ("w1", "w2")]
    report = audit.likelihood_ratio(liars.raw_unknown(tem), pairs, distance, 1.0, 20_000)
    assert report.violated and report.worst[0].word in ("secret", "other secret")

    def honest(word: str, size: int) -> list[str]:
        return tem.privatize_tokens([word] * size)

    assert not audit.likelihood_ratio(honest, pairs, distance, 1.0, 20_000).violated


def audited(sample: Any, epsilon: float, *how: Any, **options: Any) -> audit.Report:
    """The audit of two words at distance 1."""
    return audit.likelihood_ratio(sample, [("a", "b")], line(0, 1), epsilon, *how, **options)


def randomised_response(seed: int, ratio: float) -> Callable[[str, int], NDArray[np.int64]]:
    """Keep "a" and "b" so many times as often as exchange them."""
    rng, keep = np.random.default_rng(seed), ratio / (1 + ratio)
    return lambda word, size: np.where((rng.random(size) < keep) == (word == "a"), 0, 1)


def test_a_small_excess_is_found() -> None:
    """An excess of 5% over e^(ε·d) on a chosen pair, with probability 0.99."""
    found = sum(audited(randomised_response(seed, 1.05 * np.e), 1.0, 400_000).violated
                for seed in range(40))  # fmt: skip
    # At 0.99 fewer than 36 of 40 have a probability below 1e-4.
    assert found >= 36


def test_true_claims_are_refuted_as_seldom_as_stated() -> None:
    # The claim holds with equality: the hardest true one.
    refuted = sum(audited(randomised_response(seed, np.e), 1.0, 1_000, 0.9).violated
                  for seed in range(2_000))  # fmt: skip
    assert stats.binomtest(refuted, 2_000, 0.1, alternative="greater").pvalue > ALPHA


@pytest.mark.parametrize(("outputs", "events"), [(400, 1), (100, 60)])
def test_chosen_events_are_tested_on_other_draws_and_for_their_number(
    outputs: int, events: int
) -> None:
    """Some of many equal outputs exceed in any draws."""

    def refuted(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        draw = partial(rng.integers, outputs)
        return audited(lambda _, n: draw(size=n), 0.0, 1_000, 0.9, events=events).violated

    count = sum(map(refuted, range(200)))
    assert stats.binomtest(count, 200, 0.1, alternative="greater").pvalue > ALPHA


def test_an_excess_spread_over_many_outputs_is_found() -> None:
    """No single output is drawn often enough to show it."""
    half, rng = 3000, np.random.default_rng(1)

    def sample(word: str, size: int) -> NDArray[np.int64]:
        first = rng.random(size) < (0.75 if word == "a" else 0.25)
        return np.where(first, 0, half) + rng.integers(half, size=size)

    report = audited(sample, 0.5, 10_000)
    assert report.violated and report.worst[0].size > 100


def test_the_slack_is_allowed() -> None:
    for more, violated in ((0.3, True), (0.6, False)):
        report = audited(randomised_response(1, np.exp(1.5)), 1.0, slack=more)
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
