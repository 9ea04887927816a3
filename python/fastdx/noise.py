"""Noise in vector spaces, as the mechanisms use it."""

from fastdx._core import multivariate_laplace

__all__ = ["multivariate_laplace"]
