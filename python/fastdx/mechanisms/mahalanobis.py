"""Elliptical noise: the regularised Mahalanobis mechanism (Xu et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastdx._core import Embedding
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Mahalanobis(Mechanism):
    """Elliptical Laplace noise, then the nearest word (Xu et al. 2020), with the ε that holds.

    Adds noise of density ∝ exp(-e·√(zᵀA⁻¹z)) to the word's vector, with A = λΣ + (1-λ)I. Σ is the
    covariance of the vocabulary's vectors, scaled to the trace n, so directions in which the
    vectors spread get more noise. In the Euclidean metric the guarantee is ε = e/√a, where a is the
    smallest eigenvalue of A. The paper states e for its own elliptical metric.

    Parameters
    ----------
    space, epsilon, **common
        As for every `Mechanism`: a Euclidean embedding, and the provable ε.
    mixing : float, optional
        λ, from 0 (round noise, as MultivariateLaplace) to below 1; by default 0.2.

    Examples
    --------
    >>> from fastdx import Embedding, Mahalanobis
    >>> e = Embedding(["a", "b", "c"], [[0.0, 0.0], [4.0, 0.1], [8.0, 0.0]])
    >>> paper = Mahalanobis.from_paper(e, 1.0, mixing=0.5)
    >>> paper.nominal, round(paper.epsilon, 2)      # the paper's claim; the provable ε
    (1.0, 1.41)
    """

    __slots__ = ()

    name = "mahalanobis"

    def __new__(
        cls,
        space: Embedding | None = None,
        epsilon: float | None = None,
        *,
        mixing: float = 0.2,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        return super().__new__(cls, space, epsilon, mixing=mixing, **common)

    @classmethod
    def from_paper(
        cls,
        space: Embedding,
        nominal: float,
        *,
        mixing: float = 0.2,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism at the paper's `nominal` ε, per unit of the Mahalanobis norm.

        `epsilon` and `guarantee` state the provable ε in the Euclidean metric, nominal/√a.
        """
        made = cls(space, nominal, mixing=mixing, **common)
        return made.with_epsilon(nominal * made.epsilon / made.nominal)

    @property
    def nominal(self) -> float:
        """The parameter of the noise: the paper's ε, per unit of the Mahalanobis norm."""
        return float(self._details["nominal"])
