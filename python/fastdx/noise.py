"""Noise in vector spaces, as the mechanisms use it."""

from fastdx._core import (
    MetropolisSample,
    hyperbolic_laplace,
    hyperbolic_metropolis,
    multivariate_laplace,
)

__all__ = [
    "MetropolisSample",
    "hyperbolic_laplace",
    "hyperbolic_metropolis",
    "multivariate_laplace",
]
