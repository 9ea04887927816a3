"""MADLIB, the multivariate Laplace mechanism (Feyisetan, Balle, Drake, Diethe 2020)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fastdx._core import Embedding, SearchQuality, laplace_perturb, laplace_search_quality
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
        another one (see `search_quality`). 'auto' always means 'exact'.
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

    def search_quality(
        self, words: Iterable[str] | None = None, *, draws: int = 1000, ef: int | None = None
    ) -> SearchQuality:
        """Measure how much the approximate search changes the law of the exact search.

        Both searches run on the same noisy points of the mechanism. Warns if the total variation
        between the two laws is above 1%.

        Parameters
        ----------
        words : iterable of str, optional
            Words to measure; by default 100 spread over the vocabulary.
        draws : int, optional
            Noisy points per word.
        ef : int, optional
            Candidates of the search; by default those of the mechanism, or 256.

        Raises
        ------
        ParameterError
            The embedding has no graph (`Embedding.build_hnsw`).
        """
        return laplace_search_quality(self, words, draws, ef)
