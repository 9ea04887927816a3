"""The Vickrey mechanism: noise, then the nearest or the second nearest word (Xu et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fastdx._core import Embedding
from fastdx._shared.rounded import near
from fastdx.mechanisms.base import Common, Mechanism, Option

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Vickrey"]


class Vickrey(Mechanism):
    """Noise around the word, then the nearest or the second nearest word (Xu et al. 2021).

    Of the two words nearest to the noisy point z, u is released with probability
    (1 - t)·‖z - v‖ / (t·‖z - u‖ + (1 - t)·‖z - v‖), else v, the farther one. The choice depends on
    z alone, so the noise's ε holds; published code that leaves the written word itself out of
    the choice has none (docs/mechanisms.md).

    Parameters
    ----------
    space : Embedding, optional
        Words and vectors, Euclidean; the default English one if left out. ``embedding=`` is an
        alias.
    epsilon : float
        The provable ε per unit of Euclidean distance, positive.
    tuning : float, optional
        t: 0 always the nearest word (MultivariateLaplace), 1 always the second nearest (0.75 by
        default).
    mixing : float, optional
        Above 0: elliptical noise, as `Mahalanobis` has it; below 1 (0 by default: round).
    **common
        ``oov``, ``skip``, ``consistent``, ``seed``, ``pad``: see `fastdx.mechanisms.Common`.

    Raises
    ------
    ParameterError
        A parameter outside its domain, or an embedding with another metric.

    Examples
    --------
    >>> from fastdx import Embedding, Vickrey
    >>> e = Embedding(["a", "b", "c"], [[0.0, 0.0], [4.0, 0.1], [8.0, 0.0]])
    >>> {e.words[i] for i in Vickrey(e, 50.0, tuning=1.0).sample("a", 100)}
    {'b'}
    """

    __slots__ = ()

    name = "vickrey"
    options: ClassVar[tuple[Option, ...]] = (
        Option("tuning", "0 always the nearest word, 1 always the second nearest (default 0.75)"),
    )

    def __new__(
        cls,
        space: Embedding | None = None,
        epsilon: float | None = None,
        *,
        tuning: float = 0.75,
        mixing: float = 0.0,
        embedding: Embedding | None = None,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        own = {"tuning": tuning, "mixing": mixing}
        return cls._new(space, embedding, epsilon, own, common)

    @property
    def tuning(self) -> float:
        """t, how much the second nearest word is preferred."""
        return float(self._details["tuning"])

    @property
    def mixing(self) -> float:
        """λ, the share of the covariance in the noise; 0 for round noise."""
        return float(self._details["mixing"])

    def _shown(self) -> str:
        mixing = f", mixing={near(self.mixing)}" if self.mixing else ""
        return f"{super()._shown()}, tuning={near(self.tuning)}{mixing}"
