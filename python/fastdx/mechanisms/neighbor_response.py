"""Randomised response on neighbours: plain local differential privacy for words."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from fastdx._core import Cover, Embedding, WordGraph
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class NeighborResponse(Mechanism):
    """Randomised response on neighbours: ε-local differential privacy for *any* two words.

    Releases each output that a cover has for the word with probability ∝ e^ε, and every other
    output with probability ∝ 1. Measure metric mechanisms against this one, also called the
    staircase. Its ε is in nats for any two words: it is not per unit of distance, and it does not
    shrink for near words.

    Parameters
    ----------
    space, **common
        As for every `Mechanism`.
    epsilon : float
        ε for any two words, positive. If words have different numbers of outputs, a part of ε
        covers that difference.
    cover : Cover or int, optional
        The likely outputs of every word: a cover without weights, or an int k for the k nearest
        outputs. By default 40, or a fiftieth of the words if that is less.
    balance : float, optional
        For an int `cover`: the weight of frequencies in the choice of outputs, as for `Tem`.

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
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        return super().__new__(cls, space, epsilon, cover=cover, balance=balance, **common)

    @property
    def cover(self) -> Cover:
        """The likely outputs of every word."""
        cover: Cover = self._details["cover"]
        return cover
