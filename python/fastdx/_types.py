"""Types that modules share which do not import each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

__all__ = ["Bits", "ChargeLike", "LedgerLike", "Unchanged"]


class Bits(float):
    """A number of bits that knows how exact it is.

    Printed as a number; with its interval where it was estimated, and with the number of draws
    where the law itself was estimated from draws.
    """

    low: float
    """The lower end of its interval; the number itself where it is exact."""
    high: float
    """The upper end."""
    sampled: int
    """Words (of a capacity: outputs) that it is estimated from, 0 where it is a sum over all."""
    draws: int
    """Draws of every word that the law is estimated from, 0 where the law is exact."""

    def __new__(
        cls, value: float, low: float, high: float, sampled: int, draws: int = 0
    ) -> Bits:  # fmt: skip
        """Make one."""
        bits = super().__new__(cls, value)
        bits.low, bits.high, bits.sampled, bits.draws = low, high, sampled, draws
        return bits

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what it was made of, for pickle."""
        return float(self), self.low, self.high, self.sampled, self.draws

    def __str__(self) -> str:
        """Return it as a sentence's part."""
        text = f"{float(self):.2f} bits"
        if self.sampled or self.draws:
            text = f"{float(self):.2f} ({self.low:.2f} to {self.high:.2f}) bits"
        return f"{text}, estimated from {self.draws:,} draws a word" if self.draws else text


class Unchanged(NamedTuple):
    """How often common words come back as they were; see `Mechanism.unchanged`."""

    mean: float
    """Mean of Pr[M(w) = w] over common words."""
    worst: float
    """The largest one found."""
    words: int
    """How many words were measured, of the first 1,000 of the vocabulary."""
    draws: int
    """Draws of each; 0 where the probabilities were computed."""
    warning: str | None
    """A warning in plain words, where more than a fifth come back."""


class ChargeLike(Protocol):
    """A charge of a ledger, as a record reads it: `fastdx.budget.Entry` is one."""

    @property
    def account(self) -> str:
        """Whose budget it was charged to."""

    @property
    def amount(self) -> float:
        """What was charged."""

    @property
    def time(self) -> float:
        """When, in seconds since 1970."""


class LedgerLike(Protocol):
    """A ledger, as a record reads it: `fastdx.budget.Ledger` is one."""

    @property
    def budget(self) -> float:
        """The most that an account may spend."""

    def entries(self, account: str | None = None) -> Sequence[ChargeLike]:
        """Return the charges of an account, or of all of them, the first one first."""

    def spent(self, account: str) -> float:
        """Return the sum of an account's charges."""

    def remaining(self, account: str) -> float:
        """Return what an account may still spend."""
