"""The rate-distortion function: against closed forms, against mechanisms, against itself."""

from typing import Any

import numpy as np
import pytest

from fastdx import Cover, Embedding, FiniteLaw, Mechanism, NeighborResponse, Tem, WordGraph
from fastdx.channel import Channel
from fastdx.exceptions import ParameterError
from fastdx.lab.limit import vector_rate_distortion
from helpers.laws import law_of
from helpers.spaces import numbered


@pytest.mark.parametrize("deviation", [1.0, 3.0])
def test_a_fine_grid_under_a_bell_is_gaussian(deviation: float) -> None:
    grid = np.linspace(-5, 5, 501)
    prior = np.exp(-(grid**2) / 2)
    distortions = np.array([0.7, 0.3, 0.1])
    # R(D) = log2(1/D)/2, of slope 1/(2·D·ln 2).
    curve = vector_rate_distortion(
        deviation * grid[:, None],
        prior,
        slopes=1 / (2 * distortions * deviation**2 * np.log(2)),
        tolerance=0.002,
        rounds=400,
    )
    d = distortions * deviation**2
    truth = np.log2(1 / distortions) / 2
    assert np.abs(curve.attained(d) - truth).max() < 0.01
    assert np.abs(curve.least(d) - truth).max() < 0.01
    assert (curve.least(d) <= curve.attained(d) + 1e-6).all()


@pytest.mark.parametrize("at", [0, 1000])
def test_a_curve_falls_is_convex_and_lies_between_its_bounds(at: int) -> None:
    vectors = np.random.default_rng(3).normal(size=(40, 3))
    curve = vector_rate_distortion(vectors + at, slopes=10)
    assert (np.diff(curve.bits) <= 1e-6).all() and (np.diff(curve.distortion) >= -1e-6).all()
    assert (curve.gap >= -1e-4).all() and (curve.gap <= 0.03).all()
    d = np.linspace(0, curve.most, 101)
    for values in (curve.attained(d), curve.least(d)):
        assert (np.diff(values) <= 1e-9).all()
        assert (np.diff(values, 2) >= -1e-9).all()
    assert (curve.least(d) <= curve.attained(d) + 1e-4).all()
    assert np.isinf(curve.attained(-0.1))


def mechanisms(e: Embedding, rng: np.random.Generator) -> list[Mechanism]:
    count = len(e)
    sharp = rng.random((count, count)) ** rng.integers(1, 12)
    return [
        FiniteLaw(e, sharp / sharp.sum(axis=1, keepdims=True), certify=False),
        FiniteLaw(e, np.eye(count)[rng.integers(count, size=count)], certify=False),
        Tem(e, float(rng.uniform(0.3, 6))),
        Tem(e, float(rng.uniform(0.3, 9)), cover=Cover.nearest(e, 2)),
        NeighborResponse(e, float(rng.uniform(0.3, 6)), cover=2),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_no_mechanism_comes_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 10))
    e = numbered(rng.normal(size=(count, int(rng.integers(1, 5)))))
    prior = rng.dirichlet(np.ones(count))
    curve = vector_rate_distortion(e.vectors, prior, slopes=12)
    for mechanism in mechanisms(e, rng):
        channel = Channel.of(mechanism)
        bits, distortion = channel.bits(prior), channel.distortion(prior)
        assert bits >= curve.least(distortion) - 1e-4


def test_the_receiver_is_the_one_that_is_summed_out() -> None:
    rng = np.random.default_rng(8)
    e = numbered(rng.normal(size=(300, 4)) + 50)
    prior = rng.dirichlet(np.ones(300))
    mechanism = Tem(e, 2.0, cover=4)
    channel = Channel.of(mechanism)
    joint = prior[:, None] * law_of(mechanism)
    v = e.vectors.astype(np.float64)
    likely = joint.sum(axis=0)
    means = joint.T @ v / likely[:, None]
    squares = ((v[:, None] - means) ** 2).sum(axis=2)
    assert np.abs(channel.posterior_means(prior) - means).max() < 1e-4
    assert channel.distortion(prior) == pytest.approx((joint * squares).sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("vectors", "more", "message"),
    [
        ([[0.0], [1.0]], {"slopes": 0}, "slopes"),
        ([[0.0], [1.0]], {"slopes": [-1.0]}, "slopes"),
        ([[0.0], [1.0]], {"tolerance": 0}, "tolerance"),
        ([[0.0], [1.0]], {"rounds": 0}, "rounds"),
        ([[0.0], [1.0]], {"prior": [1, -1]}, "prior"),
        ([[0.0], [np.nan]], {}, "vectors"),
        ([0, 1], {}, "vectors"),
        (np.ones((3, 2)), {}, "vectors must differ"),
        ([["a"]], {}, "vectors"),
    ],
)
def test_bad_input_names_the_parameter(vectors: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        vector_rate_distortion(vectors, **more)


def test_words_of_a_graph_have_no_vectors_of_their_own() -> None:
    with pytest.raises(ParameterError, match="vectors"):
        Channel.of(Tem(WordGraph([("a", "b"), ("b", "c")]), 2.0)).distortion()
