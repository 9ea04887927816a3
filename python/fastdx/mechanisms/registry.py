"""The table of mechanisms by name."""

from __future__ import annotations

from fastdx.mechanisms.base import Mechanism
from fastdx.mechanisms.hyperbolic_laplace import HyperbolicLaplace
from fastdx.mechanisms.mahalanobis import Mahalanobis
from fastdx.mechanisms.multivariate_laplace import MultivariateLaplace
from fastdx.mechanisms.neighbor_response import NeighborResponse
from fastdx.mechanisms.tem import Tem
from fastdx.mechanisms.vickrey import Vickrey

_KINDS: tuple[type[Mechanism], ...] = (
    Tem,
    MultivariateLaplace,
    HyperbolicLaplace,
    Mahalanobis,
    NeighborResponse,
    Vickrey,
)
MECHANISMS: dict[str, type[Mechanism]] = {kind.name: kind for kind in _KINDS}
"""Every word mechanism by name; the command and the tests iterate over it."""
