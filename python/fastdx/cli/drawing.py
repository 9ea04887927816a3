"""Draws the words of batches, counts them, and adds up their price."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastdx._core import JsonBlock, Replacements, Texts, privatize_json
from fastdx.cli.formats import FORMATS, Choice, Opener, format_of
from fastdx.cli.formats.base import Batch, Draw, TextError, leaves
from fastdx.cli.messages import CommandError
from fastdx.exceptions import FastdxWarning
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from fastdx.budget import Ledger


class Bill:
    """The prices of the texts of one output by account; they are paid before its release."""

    def __init__(
        self, ledger: Ledger, mechanism: Mechanism, account: str | None, *, whole: bool
    ) -> None:
        """Start with no charges; `whole` says that texts are parts of one text (plain text)."""
        self._ledger = ledger
        self._guarantee = mechanism.guarantee
        self._account = account
        self._whole = whole
        self._prices: dict[str, list[float]] = {}
        self._units: dict[str, tuple[int, int, int]] = {}
        self._wordless = False

    def add(self, texts: Sequence[str], accounts: Sequence[str] | None) -> None:
        """Add the prices of texts; refuse a text without a price."""
        for at, text in enumerate(texts):
            price, why, units = self._guarantee._price(text)
            if why is not None:
                raise TextError(f"this release has no price: {why}", at)
            account = self._account if accounts is None else accounts[at]
            assert account is not None
            so_far = self._units.get(account, (0, 0, 0))
            words, numbers, dates = (a + b for a, b in zip(so_far, units, strict=True))
            self._units[account] = words, numbers, dates
            if any(units):
                # Partial sums by `fsum` are accurate, and a million prices need not be stored.
                sums = self._prices.setdefault(account, [])
                sums.append(price)
                if len(sums) > 4096:
                    self._prices[account] = [math.fsum(sums)]
            elif text:
                self._no_word(at)

    def _no_word(self, at: int) -> None:
        if self._whole or self._ledger.allow_wordless:
            self._wordless = True
            return
        raise TextError(
            "a text without a word: all of it would be released as it is (--allow-wordless)", at
        )

    def pay(self, name: str) -> dict[str, float]:
        """Charge every account, or none; return the charge of each."""
        from fastdx.budget import BudgetExceededError

        units = sum(map(sum, self._units.values()))
        if self._wordless and not units and not self._ledger.allow_wordless:
            message = "no word: all of it would be released as it is (--allow-wordless)"
            raise CommandError(f"{name}: {message}")
        prices = {account: math.fsum(sums) for account, sums in self._prices.items()}
        notes = {account: self._guarantee._note(*self._units[account]) for account in prices}
        try:
            self._ledger.charge_all(prices, notes)
        except BudgetExceededError as e:
            if self._account is not None:
                raise
            # Account names from a column are content.
            message = f"{name}: one of {len(prices)} accounts would pass the budget"
            raise CommandError(message, str(e)) from None
        return prices


class _Gather(Draw):
    """Keeps texts, and returns them unchanged."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def texts(self, texts: list[str], accounts: Sequence[str] | None = None) -> list[str]:
        del accounts
        self.found += texts
        return texts

    def column(self, array: Any, path: list[str], accounts: Sequence[str] | None = None) -> Any:
        del accounts
        self.texts([text for value in array for text in leaves(value.as_py(), path)])
        return array


def texts_of(
    name: str, format: str | None, column: str | None, opener: Opener
) -> Iterator[tuple[Batch, list[str]]]:
    """Yield each batch of a file with its texts, for commands that only read."""
    kind = FORMATS[format] if format else format_of(name, opener)
    if kind.by_column != (column is not None):
        needs = "needs" if kind.by_column else "takes no"
        raise CommandError(f"{name}: {kind.name} {needs} --column NAME")
    for batch in kind(Choice((column,) if column else (), by_line=True)).read(name, opener):
        gather = _Gather()
        batch.draw(gather)
        yield batch, gather.found


class Drawing(Draw):
    """Draws and counts the texts of one output."""

    def __init__(self, mechanism: Mechanism, *, whole: bool) -> None:
        """Store the mechanism; `whole` says that texts are parts of one text (plain text)."""
        self.counts: Counter[str] = Counter()
        self.bill: Bill | None = None
        self._mechanism = mechanism
        self._kept = Replacements() if whole and mechanism.consistent else None

    def texts(self, texts: list[str], accounts: Sequence[str] | None = None) -> list[str]:
        """Privatise texts; `accounts` names the account that pays for each."""
        if not texts:
            return []
        if self.bill is not None:
            self.bill.add(texts, accounts)
        out, new = self._mechanism.privatize_counted(texts, replacements=self._kept)
        self.counts.update(new)
        return out

    def strings(self, block: JsonBlock) -> Texts | list[str]:
        """Privatise the strings of some JSON records."""
        if self.bill is not None or not len(block):
            return super().strings(block)
        out, new = privatize_json(self._mechanism, block)
        self.counts.update(new)
        return out

    def column(self, array: Any, path: list[str], accounts: Sequence[str] | None = None) -> Any:
        """Privatise an Arrow array of text; in structs, the field that the path names."""
        from fastdx._shared.columns import privatize_arrow

        if self.bill is not None:
            self.bill.add(list(leaves(array.to_pylist(), path)), accounts)
        with warnings.catch_warnings():
            # The closing lines report the same counts.
            warnings.simplefilter("ignore", FastdxWarning)
            column, counts = privatize_arrow(self._mechanism, array, path)
        self.counts.update(counts)
        return column
