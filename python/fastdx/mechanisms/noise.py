"""Noise around a word's vector, then the nearest word: MADLIB, Vickrey, elliptical, hyperbolic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastdx._core import Embedding, WordGraph, laplace_perturb
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


class Vickrey(Mechanism):
    """Noise around the word, then the nearest or the second nearest word (Xu et al. 2021).

    Let u be the word nearest to the noisy point z, and v the second nearest. The mechanism releases
    u with probability (1 - t)·‖z - v‖ / (t·‖z - u‖ + (1 - t)·‖z - v‖), else v. The choice depends
    on z alone, so the ε of the noise holds. Published code excludes the written word from the
    choice and so has no finite ε (docs/research/mechanisms.md).

    Parameters
    ----------
    space, epsilon, **common
        As for every `Mechanism`: a Euclidean embedding, and the provable ε.
    tuning : float, optional
        t. 0 always releases the nearest word, as MultivariateLaplace does; 1 always the second
        nearest. By default 0.75.
    mixing : float, optional
        λ of the elliptical noise of `Mahalanobis`, below 1. By default 0, which is round noise.

    Examples
    --------
    >>> from fastdx import Embedding, Vickrey
    >>> e = Embedding(["a", "b", "c"], [[0.0, 0.0], [4.0, 0.1], [8.0, 0.0]])
    >>> {e.words[i] for i in Vickrey(e, 50.0, tuning=1.0).sample("a", 100)}
    {'b'}
    """

    __slots__ = ()

    name = "vickrey"

    def __new__(
        cls,
        space: Embedding | None = None,
        epsilon: float | None = None,
        *,
        tuning: float = 0.75,
        mixing: float = 0.0,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        return super().__new__(cls, space, epsilon, tuning=tuning, mixing=mixing, **common)


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
        cls, space: Embedding, nominal: float, *, mixing: float = 0.2, **common: Unpack[Common]
    ) -> Self:
        """Make the mechanism at the paper's `nominal` ε, per unit of the Mahalanobis norm.

        `epsilon` and `guarantee` state the provable ε in the Euclidean metric, nominal/√a.
        """
        made = cls(space, nominal, mixing=mixing, **common)
        return made.with_epsilon(nominal * made.epsilon / made.nominal)


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
