"""Word mechanisms: one file each, and one line here."""

from __future__ import annotations

from fastdx.mechanisms.base import Common, Mechanism, Option, Unchanged
from fastdx.mechanisms.finite_law import FiniteLaw
from fastdx.mechanisms.hyperbolic_laplace import HyperbolicLaplace
from fastdx.mechanisms.mahalanobis import Mahalanobis
from fastdx.mechanisms.multivariate_laplace import MultivariateLaplace
from fastdx.mechanisms.neighbor_response import NeighborResponse
from fastdx.mechanisms.tem import Tem
from fastdx.mechanisms.vickrey import Vickrey

__all__ = [
    "MECHANISMS",
    "Common",
    "FiniteLaw",
    "HyperbolicLaplace",
    "Mahalanobis",
    "Mechanism",
    "MultivariateLaplace",
    "NeighborResponse",
    "Option",
    "Tem",
    "Unchanged",
    "Vickrey",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    cls.name: cls
    for cls in (
        Tem,
        MultivariateLaplace,
        HyperbolicLaplace,
        Mahalanobis,
        NeighborResponse,
        Vickrey,
    )
}
"""Every word mechanism by its name: what the command and the tests go through."""
