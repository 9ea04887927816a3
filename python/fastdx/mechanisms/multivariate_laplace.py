"""MADLIB, the multivariate Laplace mechanism (Feyisetan, Balle, Drake, Diethe 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastdx._core import Embedding, laplace_perturb
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self, Unpack


class MultivariateLaplace(Mechanism):
    """MADLIB, the multivariate Laplace mechanism (Feyisetan et al. 2020).

    Adds noise of density ∝ exp(-ε‖z‖) to the word's vector and releases the nearest word:
    ε·d-private in the Euclidean metric.

    Parameters
    ----------
    space, epsilon, **common
        As for every `Mechanism`: a Euclidean embedding, and ε.
    search : str, optional
        'exact' (default) finds the true nearest word. 'hnsw' searches a graph, which is built if
        the embedding has none, and may find another word. The guarantee is the same, the law is
        another one; one seed gives both the same noise, to compare. 'auto' always means 'exact'.
    ef : int, optional
        The number of candidates that 'hnsw' looks at, 1 to 10,000; by default 256.

    Examples
    --------
    >>> from fastdx import MultivariateLaplace
    >>> madlib = MultivariateLaplace(epsilon=8.0)
    >>> madlib.sample("coffee", 5).shape
    (5,)
    """

    __slots__ = ()

    name = "laplace"

    def __new__(
        cls,
        space: Embedding | None = None,
        epsilon: float | None = None,
        *,
        search: str = "exact",
        ef: int | None = None,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        return super().__new__(cls, space, epsilon, search=search, ef=ef, **common)

    def perturb(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Add fresh noise to vectors, shape (m, n), without searching for the nearest word."""
        return laplace_perturb(self, vectors)
