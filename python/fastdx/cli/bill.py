"""The price of an output, which accounts pay before it is released."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from fastdx.cli.formats import Batch
from fastdx.cli.messages import CommandError
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from fastdx.budget import Ledger

WORDLESS = "all of it would be released as it is (--allow-wordless)"


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
        self._prices: defaultdict[str, float] = defaultdict(float)
        self._units: defaultdict[str, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
        self._wordless = False

    def add(self, batch: Batch) -> None:
        """Add the prices of texts; refuse a text without a price."""
        texts = batch.texts
        payers = batch.payers or [self._account or ""] * len(texts)
        for at, (text, account) in enumerate(zip(texts, payers, strict=True)):
            price, why, units = self._guarantee._price(text)
            if why is not None:
                raise CommandError(f"{batch.place(at)}: this release has no price: {why}")
            if any(units):
                words, numbers, dates = self._units[account]
                self._units[account] = words + units[0], numbers + units[1], dates + units[2]
                self._prices[account] += price
            elif text and not (self._whole or self._ledger.allow_wordless):
                raise CommandError(f"{batch.place(at)}: a text without a word: {WORDLESS}")
            elif text:
                self._wordless = True

    def pay(self, name: str) -> dict[str, float]:
        """Charge every account, or none; return the charge of each."""
        from fastdx.budget import BudgetExceededError

        if self._wordless and not self._units and not self._ledger.allow_wordless:
            raise CommandError(f"{name}: no word: {WORDLESS}")
        prices = dict(self._prices)
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
