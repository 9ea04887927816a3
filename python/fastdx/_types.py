"""Types shared by modules that do not import each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Bits", "LanguageModel", "Unchanged"]


@runtime_checkable
class LanguageModel(Protocol):
    """A public model of language in Python, as the `language` of a `Tem`, which describes it."""

    def log_next(self, prefix: tuple[str | None, ...], /) -> ArrayLike:
        """Return ln Pr[next word = w | prefix] of every word w of the space: shape (V,).

        A prefix has the vocabulary's spelling, and None for a mask, a number, or an unknown word
        that was kept; it is empty at the beginning.
        """
        ...


class Bits(float):
    """A number of bits with its interval; it prints as both if it is an estimate."""

    low: float
    high: float
    """The ends of the interval; the number itself if it is exact."""
    sampled: int
    """The number of words drawn for the estimate, or of draws of each word; 0 for an exact sum."""

    def __new__(cls, value: float, low: float, high: float, sampled: int) -> Bits:
        bits = super().__new__(cls, value)
        bits.low, bits.high, bits.sampled = low, high, sampled
        return bits

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.low, self.high, self.sampled

    def __str__(self) -> str:
        interval = f" ({self.low:.2f} to {self.high:.2f})" if self.sampled else ""
        return f"{float(self):.2f}{interval} bits"


class Unchanged(NamedTuple):
    """How often common words come back unchanged; see `Mechanism.unchanged`."""

    mean: float
    """The mean of Pr[M(w) = w] over common words."""
    worst: float
    """The largest such probability found."""
    words: int
    """The number of words measured, among the first 1,000 of the vocabulary."""
    draws: int
    """Draws of each word; 0 if the probabilities were computed."""
    warning: str | None
    """A warning in plain words, if more than a fifth come back unchanged; else None."""
