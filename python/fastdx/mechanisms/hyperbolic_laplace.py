"""Hyperbolic Laplace noise on a Poincaré embedding (after Feyisetan, Diethe, Drake 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastdx._core import Embedding, WordGraph
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class HyperbolicLaplace(Mechanism):
    """Hyperbolic Laplace noise on a Poincaré embedding (ICDM'19, with the ε that holds).

    Möbius addition moves centred noise to the word's point, and a clamp keeps the result within
    radius 1 - 1e-5. The word nearest in hyperbolic distance is released.

    Parameters
    ----------
    space : Embedding
        An embedding with ``metric="poincare"``.
    epsilon : float
        The provable ε per unit of hyperbolic distance, above n - 1 for base='volume' and above n
        for base='ball', n being the dimension. (Tem on the same embedding takes every ε.)
    base : str, optional
        'volume' (default): noise of density exp(-ερ) with respect to hyperbolic volume. 'ball':
        the paper's noise, whose nominal parameter is ε - n.
    **common
        As for every `Mechanism`.

    Examples
    --------
    >>> from fastdx import Embedding, HyperbolicLaplace
    >>> points = [[0, 0], [0.5, 0.1], [0.5, -0.1]]
    >>> e = Embedding(["animal", "dog", "cat"], points, metric="poincare")
    >>> HyperbolicLaplace(e, 1.5).sample("dog", 4).shape
    (4,)
    >>> paper = HyperbolicLaplace.from_paper(e, 0.5)
    >>> paper.nominal, paper.epsilon                # the paper's claim; the provable ε
    (0.5, 2.5)
    """

    __slots__ = ()

    name = "hyperbolic"
    default_space = "nouns"

    def __new__(
        cls,
        space: Embedding | None = None,
        epsilon: float | None = None,
        *,
        base: str = "volume",
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        return super().__new__(cls, space, epsilon, base=base, **common)

    @classmethod
    def from_paper(cls, space: Embedding, nominal: float, **common: Unpack[Common]) -> Self:
        """Make ICDM'19's mechanism at the paper's `nominal` ε, with ``base='ball'``.

        `epsilon` and `guarantee` state the provable ε, nominal + n.
        """
        return cls(space, nominal + (cls.smallest_epsilon(space) + 1), base="ball", **common)

    @classmethod
    def smallest_epsilon(cls, space: Embedding | WordGraph) -> float:
        """Return n - 1, above which the noise exists."""
        return float(space.dim - 1) if isinstance(space, Embedding) else 0.0

    @property
    def nominal(self) -> float:
        """The parameter of the noise: ε for base='volume', ε - n (the paper's ε) for 'ball'."""
        return float(self._details["nominal"])
