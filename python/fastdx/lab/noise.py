"""The noise in vector spaces that the mechanisms use."""

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
