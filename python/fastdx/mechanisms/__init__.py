"""Word mechanisms."""

from __future__ import annotations

from fastdx._selection import PrivateSpans, Select, improbable, rare
from fastdx._types import Unchanged
from fastdx.mechanisms.base import Common, Mechanism
from fastdx.mechanisms.finite_law import FiniteLaw
from fastdx.mechanisms.neighbor_response import NeighborResponse
from fastdx.mechanisms.noise import HyperbolicLaplace, Mahalanobis, MultivariateLaplace, Vickrey
from fastdx.mechanisms.spec import MECHANISMS, from_spec
from fastdx.mechanisms.tem import Tem

__all__ = [
    "MECHANISMS",
    "Common",
    "FiniteLaw",
    "HyperbolicLaplace",
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
