"""Noise in the embedding, elliptical too, and the choice between the two nearest words."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fastdx import Embedding, Mahalanobis, Mechanism, MultivariateLaplace, Vickrey
from fastdx.lab import audit, laws
from helpers.draws import as_users_draw, assert_alike, assert_draws
from helpers.spaces import numbered

DRAWS = 200_000
PLACES = [0.0, 0.4, 1.0, 1.0, 2.5, 2.6, 6.0]
"""Of seven words, two of them at one place."""


@pytest.mark.parametrize("tuning", [0.0, 0.3, 1.0])
def test_in_one_dimension_it_is_the_integral(tuning: float) -> None:
    e = numbered(sorted({*PLACES}))
    drawn: list[Mechanism] = [as_users_draw(Vickrey(e, 1.5, tuning=tuning, seed=11))]
    if tuning == 0:  # always the nearest
        drawn += [MultivariateLaplace(e, 1.5, seed=12), Mahalanobis(e, 1.5, mixing=0.7, seed=13)]
    law = laws.vickrey(e, 1.5, t=tuning)
    for word in (0, 2, 5):
        for mechanism in drawn:
            assert_draws(mechanism, e.words[word], law.row(word), DRAWS)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_on_a_line_round_noise_has_the_closed_form_of_the_laplace_law(epsilon: float) -> None:
    m = MultivariateLaplace(numbered([-1.0, 0.2, 1.0]), epsilon, seed=4)
    for word, x in zip(m.space.words, m.embedding.vectors[:, 0], strict=True):
        # Cells meet at -0.4 and 0.6.
        below = stats.laplace.cdf([-0.4, 0.6], float(x), 1 / epsilon)
        assert_draws(m, word, np.diff([0.0, *below, 1.0]), 1_000_000)


def test_in_many_dimensions_it_is_the_choice_of_the_paper() -> None:
    """The law against the same formula in numpy, on the noisy points of another seed."""
    rng = np.random.default_rng(5)
    e = numbered(rng.normal(size=(12, 3)) * [1, 2, 0.5])
    t, epsilon, mixing, vectors = 0.6, 2.0, 0.6, e.vectors.astype(float)
    m = as_users_draw(Vickrey(e, epsilon, tuning=t, mixing=mixing, seed=1))
    drawn = m.sample("w3", DRAWS)
    # The noise: Gamma(3, 1/e) along a uniform direction, times A's factor.
    sigma = np.cov(vectors.T, bias=True)
    a = mixing * sigma * 3 / np.trace(sigma) + (1 - mixing) * np.eye(3)
    nominal = epsilon * np.sqrt(np.linalg.eigvalsh(a)[0])
    z = rng.normal(size=(DRAWS, 3))
    z *= (rng.gamma(3, 1 / nominal, DRAWS) / np.linalg.norm(z, axis=1))[:, None]
    z = z @ np.linalg.cholesky(a).T + vectors[3]
    away = np.linalg.norm(z[:, None, :] - vectors[None], axis=2)
    two = np.argsort(away, axis=1, kind="stable")[:, :2]
    first, second = np.take_along_axis(away, two, 1).T
    nearest = rng.random(DRAWS) < (1 - t) * second / (t * first + (1 - t) * second)
    other = np.where(nearest, two[:, 0], two[:, 1])
    assert_alike(*(np.bincount(x, minlength=12) for x in (drawn, other)))


def test_the_extremes() -> None:
    e = numbered(PLACES)
    plain = MultivariateLaplace(e, 2.0, seed=3)
    # Always the nearest: MADLIB's law. Words at one place: the first of them is nearest.
    always = Vickrey(e, 2.0, tuning=0.0, seed=4).sample("w2", DRAWS)
    counts = np.array([np.bincount(x, minlength=7) for x in (always, plain.sample("w2", DRAWS))])
    assert counts[:, 3].tolist() == [0, 0]
    assert_alike(*counts)
    # Always the second nearest, at a noise that leaves the word's place never.
    for word, other in [("w0", "w1"), ("w2", "w3"), ("w3", "w3"), ("w4", "w5"), ("w6", "w5")]:
        assert {e.words[i] for i in Vickrey(e, 1e9, tuning=1.0).sample(word, 200)} == {other}
    # Tiny ε, one word, one word left.
    assert len(set(Vickrey(e, 1e-9).sample("w0", 500))) > 1
    assert set(Vickrey(Embedding(["a"], [[1.0, 2.0]]), 1.0).sample("a", 50)) == {0}
    alone = Vickrey(e, 1.0, exclude=[w for w in e.words if w != "w4"])
    assert set(alone.sample("w0", 50)) == {4}
    # The price is the noise's.
    assert Vickrey(e, 2.0, mixing=0.5).epsilon == Mahalanobis(e, 2.0).epsilon
    assert Vickrey(e, 2.0).guarantee.epsilon == 2.0


def line() -> Embedding:
    """Words along a line, and one beside it, where the noise is narrow."""
    x = np.zeros((41, 2))
    x[:, 0] = np.linspace(-20, 20, 41)
    x[0] = [0, 1.0]
    return numbered(x)


def test_the_price_holds_and_the_nominal_one_does_not() -> None:
    e = line()
    m = Mahalanobis.from_paper(e, 2.0, mixing=0.9, seed=1)
    # A = λΣ·(n/trace) + (1-λ)I.
    sigma = np.cov(e.vectors.T.astype(float), bias=True)
    a = np.linalg.eigvalsh(0.9 * sigma * 2 / np.trace(sigma) + 0.1 * np.eye(2))[0]
    assert m.epsilon == pytest.approx(2.0 / np.sqrt(a), rel=1e-8) and m.epsilon >= 2.0 / np.sqrt(a)
    pair = [("w0", "w20")]
    assert audit.likelihood_ratio(m.sample, pair, e, m.nominal, 200_000).violated
    assert not audit.likelihood_ratio(m.sample, pair, e, m.epsilon, 200_000).violated


def test_without_covariance_it_is_round_noise() -> None:
    e = line()
    m = Mahalanobis(e, 1.5, mixing=0.0, seed=3)
    assert m.epsilon == pytest.approx(m.nominal, rel=1e-12)
    assert np.array_equal(
        m.sample("w3", 500), MultivariateLaplace(e, 1.5, seed=3).sample("w3", 500)
    )


def test_the_claim_of_wsdm20_on_glove(shared: Path) -> None:
    """MADLIB at ε=5 on GloVe 50d: about half of the words kept at worst, hundreds of outputs.

    Independently in numpy for the same words: noise, then the nearest word by f64 products.
    """
    e = Embedding.load(shared / "embeddings" / "glove.6B.50d.12k.txt")
    assert (len(e), e.dim) == (12_691, 50)
    m = MultivariateLaplace(e, 5.0, seed=1)
    words = np.arange(60) * 211
    drawn = m.privatize_ids(np.repeat(words, 1000)).reshape(60, 1000)
    unchanged = (drawn == words[:, None]).sum(1)
    distinct = np.array([len(set(row)) for row in drawn])
    # Over all 12,691 words the mean is 151 and the standard deviation 126.
    assert 90 < unchanged.mean() < 215 and 590 < distinct.mean() < 690

    rng = np.random.default_rng(2)
    u = e.vectors.astype(np.float64)
    half = (u**2).sum(1) / 2
    for w in words[::12]:
        z = rng.normal(size=(1000, 50))
        z *= (rng.gamma(50, 1 / 5.0, size=1000) / np.linalg.norm(z, axis=1))[:, None]
        kept = (np.argmax((u[w] + z) @ u.T - half, axis=1) == w).sum()
        ours = unchanged[list(words).index(w)]
        p = max((kept + ours) / 2000, 0.005)
        assert abs(int(kept) - int(ours)) < 6 * np.sqrt(2 * 1000 * p * (1 - p) + 1)
