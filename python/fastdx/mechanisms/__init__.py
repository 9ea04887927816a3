"""Word mechanisms. Each has a file of its own and one line in this file."""

from __future__ import annotations

from fastdx._selection import Improbable, PrivateSpans, Select, improbable, rare
from fastdx._types import Unchanged
from fastdx.mechanisms.base import Common, Mechanism
from fastdx.mechanisms.finite_law import FiniteLaw
from fastdx.mechanisms.hyperbolic_laplace import HyperbolicLaplace
from fastdx.mechanisms.mahalanobis import Mahalanobis
from fastdx.mechanisms.multivariate_laplace import MultivariateLaplace
from fastdx.mechanisms.neighbor_response import NeighborResponse
from fastdx.mechanisms.spec import MECHANISMS, from_spec
from fastdx.mechanisms.tem import Tem
from fastdx.mechanisms.vickrey import Vickrey

__all__ = [
    "MECHANISMS",
    "Common",
    "FiniteLaw",
    "HyperbolicLaplace",
    "Improbable",
    "Mahalanobis",
    "Mechanism",
    "MultivariateLaplace",
    "NeighborResponse",
    "PrivateSpans",
    "Select",
    "Tem",
    "Unchanged",
    "Vickrey",
    "from_spec",
    "improbable",
    "rare",
]
