"""Elliptical noise: its own metric's ε is not the Euclidean one."""

import numpy as np
import pytest

from fastdx import Embedding, Mahalanobis, MultivariateLaplace
from fastdx.lab import audit
from helpers.spaces import numbered


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
    # Words at one place spread in no direction.
    Mahalanobis(Embedding(["a", "b"], [[1.0, 2.0]] * 2), 1.0).sample("a", 10)
