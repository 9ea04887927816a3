"""Randomised response on neighbours: plain local differential privacy for words."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from fastdx._core import Cover, Embedding, WordGraph, mechanism_cover
from fastdx._shared.rounded import up
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["NeighborResponse"]


class NeighborResponse(Mechanism):
    """Randomised response on neighbours: ε-local differential privacy for *any* two words.

    Releases each of the outputs that a cover has for the word with probability ∝ e^ε, every other
    output with probability ∝ 1. The staircase beside which metric mechanisms are to be measured:
    its ε is in nats for any two words, not per distance, and does not shrink for near ones.

    Parameters
    ----------
    space : Embedding or WordGraph, optional
        Words and metric; the default English embedding if left out. ``embedding=`` is an alias.
    epsilon : float
        ε for any two words, positive. Where words have different numbers of outputs, a part of it
        pays for that.
    cover : Cover or int, optional
        The likely outputs of every word: a cover without weights, or k for the k nearest outputs;
        by default 40, or a fiftieth of the words where
        that is less.
    balance : float, optional
        With an int `cover`: outputs of like frequency too, as for `Tem`.
    **common
        ``oov``, ``skip``, ``exclude``, ``consistent``, ``seed``, ``pad``: see
        `fastdx.mechanisms.Common`.

    Raises
    ------
    ParameterError
        A parameter outside its domain; a cover with weights.

    Examples
    --------
    >>> from fastdx import Embedding, NeighborResponse
    >>> e = Embedding(["tea", "coffee", "king", "queen"], [[0.0], [0.1], [5.0], [5.2]])
    >>> response = NeighborResponse(e, 2.0, cover=2)
    >>> response.guarantee.bound(["tea"], ["king"])
    2.0
    """

    __slots__ = ()

    name = "response"

    def __new__(
        cls,
        space: Embedding | WordGraph | None = None,
        epsilon: float | None = None,
        *,
        cover: Cover | SupportsIndex | None = None,
        balance: float | None = None,
        embedding: Embedding | None = None,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        return cls._new(space, embedding, epsilon, {"cover": cover, "balance": balance}, common)

    @property
    def cover(self) -> Cover:
        """The likely outputs of every word."""
        cover = mechanism_cover(self)
        assert cover is not None
        return cover

    @property
    def score(self) -> float:
        """The log-ratio of a likely output and another one."""
        return float(self._details["score"])

    def _shown(self) -> str:
        return f"epsilon={up(self.epsilon)} for any two words, cover={self.cover!r}"
