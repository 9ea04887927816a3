"""A ledger of privacy spent, that refuses before anything is released."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from os import PathLike
from typing import NamedTuple

from fastdx._core import Mechanism, tokenize
from fastdx.exceptions import FastdxError, FileError, InputTypeError, ParameterError

__all__ = ["BudgetExceededError", "Entry", "Ledger"]


class BudgetExceededError(FastdxError):
    """A release would pass the budget; nothing was released and nothing charged."""


class Entry(NamedTuple):
    """One charge."""

    account: str
    """The user or document."""
    amount: float
    """What was charged."""
    note: str
    """What for."""
    time: float
    """When, seconds since 1970."""


class Ledger:
    """Adds up what releases cost, per user or document, in an SQLite file.

    A charge is written, and on disk, before the release it pays for is made: a process that is
    killed in between has paid and released nothing. Safe under threads, processes and forks:
    every charge is one locked transaction.

    Two units must not be mixed in one ledger: ε·words (`privatize`), which is ε per unit of
    distance times the number of words; and ε·Σd (`charge_alternatives`), the log-ratio between
    a text and an alternative to it.

    Parameters
    ----------
    path : str or os.PathLike
        The SQLite file; made where there is none.
    budget : float
        What an account may spend in all, ≥ 0.
    timeout : float, optional
        Seconds to wait for other processes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fastdx import Tem
    >>> from fastdx.budget import Ledger
    >>> ledger = Ledger(pathlib.Path(tempfile.mkdtemp()) / "budget.sqlite", budget=30.0)
    >>> private = ledger.privatize(Tem(epsilon=3.0), "I like coffee", account="user 7")
    >>> ledger.spent("user 7"), ledger.remaining("user 7")
    (9.0, 21.0)
    """

    def __init__(self, path: str | PathLike[str], budget: float, *, timeout: float = 30.0) -> None:
        """Open or make the file."""
        if not (isinstance(budget, int | float) and math.isfinite(budget) and budget >= 0):
            raise ParameterError(f"budget must be finite, at least 0, got {budget!r}")
        self.path = os.fspath(path)
        self.budget = float(budget)
        self.timeout = timeout
        with self._connect() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(
                "CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, account TEXT NOT NULL,"
                " amount REAL NOT NULL CHECK (amount >= 0), note TEXT NOT NULL, time REAL NOT NULL)"
            )
            db.execute("CREATE INDEX IF NOT EXISTS by_account ON charges (account)")

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        # A connection a call: none is shared between threads, or inherited by a fork.
        try:
            with closing(
                sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None)
            ) as db:
                db.execute("PRAGMA synchronous=FULL")
                yield db
        except sqlite3.Error as e:
            raise FileError(None, str(e), self.path) from e

    def spent(self, account: str) -> float:
        """Return what an account has been charged."""
        with self._connect() as db:
            return self._spent(db, account)

    def remaining(self, account: str) -> float:
        """Return what an account may still spend."""
        return max(self.budget - self.spent(account), 0.0)

    @staticmethod
    def _spent(db: sqlite3.Connection, account: str) -> float:
        amounts = db.execute("SELECT amount FROM charges WHERE account = ?", (account,))
        # Exactly rounded: many small charges are not lost.
        return math.fsum(amount for (amount,) in amounts)

    def charge(self, account: str, amount: float, note: str = "") -> float:
        """Charge an account, or refuse.

        Parameters
        ----------
        account : str
            The user or document.
        amount : float
            What the release costs, ≥ 0.
        note : str, optional
            What for. It is stored: no private text.

        Returns
        -------
        float
            What is left.

        Raises
        ------
        BudgetExceededError
            It would pass the budget; nothing is charged.
        """
        if not isinstance(account, str) or not account:
            raise InputTypeError(f"account must be a str, not empty, got {account!r}")
        if not (isinstance(amount, int | float) and amount >= 0):
            raise ParameterError(f"amount must be a number, at least 0, got {amount!r}")
        with self._connect() as db:
            # Locks out other writers from the look until the charge is on disk.
            db.execute("BEGIN IMMEDIATE")
            try:
                spent = self._spent(db, account)
                total = math.fsum([spent, amount])
                # What rounding of a sum can add is no excess.
                if not total <= self.budget * (1 + 1e-12):
                    raise BudgetExceededError(
                        f"{account!r} has spent {spent:g} of {self.budget:g}: {amount:g} more "
                        "would pass the budget"
                    )
                db.execute(
                    "INSERT INTO charges (account, amount, note, time) VALUES (?, ?, ?, ?)",
                    (account, float(amount), note, time.time()),
                )
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        return max(self.budget - total, 0.0)

    def privatize(self, mechanism: Mechanism, text: str, *, account: str) -> str:
        """Charge ε for every word of a text, then release it privatised.

        Raises
        ------
        BudgetExceededError
            The text would pass the budget; nothing is released.
        ParameterError
            A mechanism that releases words unprotected: with ``skip=``, ``oov='keep'``, a seed, or
            the Gumbel sampler.
        """
        _check(mechanism)
        words = len(tokenize(text))
        note = f"{words} words at ε = {mechanism.epsilon:g}"
        self.charge(account, mechanism.epsilon * words, note)
        return mechanism.privatize(text)

    def charge_alternatives(
        self, mechanism: Mechanism, text: str, alternatives: Iterable[str], *, account: str
    ) -> float:
        """Charge the largest log-ratio between a text and alternatives to it: ε·Σd.

        An observer who cannot tell the text from any of these by more than that learns no more.

        Returns
        -------
        float
            What was charged; infinite, and hence refused, where nothing is proved.
        """
        _check(mechanism)
        bounds = [mechanism.guarantee.bound(text, a) for a in alternatives]
        if not bounds:
            raise ParameterError("alternatives must be at least one text, got none")
        self.charge(account, max(bounds), f"{len(bounds)} alternatives")
        return max(bounds)

    def entries(self, account: str | None = None) -> list[Entry]:
        """Return all charges, oldest first, of one account or of all."""
        with self._connect() as db:
            where, values = ("WHERE account = ?", (account,)) if account is not None else ("", ())
            rows = db.execute(
                f"SELECT account, amount, note, time FROM charges {where} ORDER BY id",
                values,
            )
            return [Entry(*row) for row in rows]


def _check(mechanism: Mechanism) -> None:
    """Refuse what no number pays for."""
    reasons = {
        "skip= releases words unprotected": bool(mechanism.skip),
        "oov='keep' releases words unprotected": mechanism.oov == "keep",
        "a seed makes the output predictable": mechanism.seed is not None,
        "its sampler proves nothing": not math.isfinite(mechanism.guarantee.slack),
    }
    for reason, true in reasons.items():
        if true:
            raise ParameterError(f"mechanism has no price: {reason}")
