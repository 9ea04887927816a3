"""The Vickrey mechanism: noise, then the nearest or the second nearest word (Xu et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastdx._core import Embedding
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


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
