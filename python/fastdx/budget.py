"""A ledger of spent privacy budget, which refuses a release before anything is drawn."""

from __future__ import annotations

import math
import os
import random
import sqlite3
import stat
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from fastdx.exceptions import FastdxError, FileError, InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism

__all__ = ["BudgetExceededError", "Entry", "Ledger"]


# Seconds between two tries to lock the file. SystemRandom, so that a program's seed has no effect.
_PAUSE = (0.001, 0.01)
_PAUSES = random.SystemRandom()

_TABLES = (
    "CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, account TEXT NOT NULL,"
    " amount REAL NOT NULL CHECK (amount >= 0), note TEXT NOT NULL, time REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS by_account ON charges (account)",
    "CREATE TABLE IF NOT EXISTS terms (name TEXT PRIMARY KEY, value REAL NOT NULL)",
)


class BudgetExceededError(FastdxError):
    """A release would exceed the budget; nothing was released and nothing was charged."""


class Entry(NamedTuple):
    """One charge of an account, with a note on the release, and its time in seconds since 1970."""

    account: str
    amount: float
    note: str
    time: float


_FIELDS = ", ".join(Entry._fields)


class Ledger:
    """Adds up the prices of releases, per user or document, in an SQLite file.

    The ledger writes a charge to disk before it makes the release. If the process is killed in
    between, the account is charged and nothing is released. The ledger is safe under threads,
    processes and forks: every charge is one locked transaction. Only the file's owner can read it.

    `privatize` charges the text's `Guarantee.price`: ε per unit of distance times the number of
    words (of distinct words with ``consistent=True``), and for a number or a date that is drawn by
    its own law that law's ε, per unit of its own metric. It refuses a release, before it is drawn,
    if no finite number pays for it: of a mechanism with a seed, of one that proves nothing or
    releases words unchanged, and of a text with unknown words that are recognisable in the output
    (``oov='drop'``, ``'mask'``, ``'error'``, or a mechanism that proves nothing about them).

    Parameters
    ----------
    path : str or os.PathLike
        The SQLite file; created if it does not exist.
    budget : float, optional
        The most that an account may spend in total, ≥ 0. The file stores it. A smaller budget than
        the file's replaces it for all processes that have the file open; a larger one is a
        `ParameterError`. By default the file's budget.
    timeout : float, optional
        Seconds to wait for other processes. After that a `FileError` is raised and nothing is
        charged.
    raise_budget : bool, optional
        Whether to accept a larger budget than the file's and store it.
    allow_wordless : bool, optional
        Whether to release texts without words (punctuation marks, white space), unchanged and
        without a charge. By default they are refused, because such a text is released as a whole.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fastdx import Tem
    >>> from fastdx.budget import Ledger
    >>> ledger = Ledger(pathlib.Path(tempfile.mkdtemp()) / "budget.sqlite", budget=30.0)
    >>> private = ledger.privatize(Tem.recommended(), "I agree", account="user 7")
    >>> ledger.spent("user 7"), ledger.remaining("user 7")
    (5.2, 24.8)
    """

    def __init__(
        self,
        path: str | PathLike[str],
        budget: float | None = None,
        *,
        timeout: float = 30.0,
        raise_budget: bool = False,
        allow_wordless: bool = False,
    ) -> None:
        if budget is None:
            if not Path(path).is_file():
                raise ParameterError("budget must be given for a new ledger, got None")
        elif not (isinstance(budget, int | float) and math.isfinite(budget) and budget >= 0):
            raise ParameterError(f"budget must be finite, at least 0, got {budget!r}")
        self.path = str(Path(path).absolute())
        self.timeout = timeout
        self.allow_wordless = allow_wordless
        self._own_file()
        with self._connect() as db:
            made = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'terms'"
            kept = self._budget(db) if db.execute(made).fetchone()[0] else None
            if kept is not None and budget in (None, kept):
                return  # nothing to write, so no lock is needed
            self._patiently(db, "PRAGMA journal_mode=WAL")
            self._patiently(db, "BEGIN IMMEDIATE")
            for table in _TABLES:
                db.execute(table)
            kept = self._budget(db)
            budget = kept if budget is None else budget
            if budget is None:
                raise ParameterError("budget must be given: the ledger has none")
            if kept is not None and budget > kept and not raise_budget:
                raise ParameterError(
                    f"budget must be at most the file's, {kept:g}, got {budget:g}: "
                    "raise_budget=True raises it"
                )
            db.execute("INSERT OR REPLACE INTO terms VALUES ('budget', ?)", (float(budget),))
            db.execute("COMMIT")

    def _own_file(self) -> None:
        """Create the file for its owner alone; SQLite gives its other files the same mode."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            mode = stat.S_IMODE(Path(self.path).stat().st_mode)
            if mode & 0o077:
                message = f"others can read this ledger (mode {mode:o}): chmod 600"
                raise FileError(None, message, self.path) from None
        except OSError as e:
            raise FileError(e.errno, e.strerror, self.path) from e

    @staticmethod
    def _budget(db: sqlite3.Connection) -> float | None:
        row = db.execute("SELECT value FROM terms WHERE name = 'budget'").fetchone()
        return None if row is None else float(row[0])

    @property
    def budget(self) -> float:
        """The most that an account may spend in total; read from the file each time."""
        with self._connect() as db:
            return self._budget(db) or 0.0

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        # One connection per call, so threads share none and a fork inherits none; what it does not
        # commit is rolled back. A ledger that was removed is not made again, without its charges.
        uri, wait = f"{Path(self.path).as_uri()}?mode=rw", self.timeout
        try:
            with closing(sqlite3.connect(uri, wait, isolation_level=None, uri=True)) as db:
                db.execute("PRAGMA synchronous=FULL")
                yield db
        except sqlite3.Error as e:
            raise FileError(None, str(e), self.path) from e

    def _patiently(self, db: sqlite3.Connection, statement: str) -> None:
        """Execute a statement that locks the file; wait until other processes release it.

        SQLite's own wait tries less and less often, so new processes come first. With ten processes
        a charge has waited for 15 seconds. Here all processes try equally often.
        """
        end = time.monotonic() + self.timeout
        db.execute("PRAGMA busy_timeout = 0")
        while True:
            try:
                db.execute(statement)
                break
            except sqlite3.OperationalError as e:
                if "lock" not in str(e):
                    raise
                if time.monotonic() >= end:
                    message = f"other processes kept the ledger for {self.timeout:g} seconds"
                    raise FileError(None, message, self.path) from e
            time.sleep(_PAUSES.uniform(*_PAUSE))
        db.execute(f"PRAGMA busy_timeout = {round(1000 * min(self.timeout, 1e6))}")

    def spent(self, account: str) -> float:
        """Return the total charged to an account."""
        with self._connect() as db:
            return self._spent(db, _account(account))

    def remaining(self, account: str) -> float:
        """Return the amount that an account may still spend."""
        with self._connect() as db:
            budget = self._budget(db) or 0.0
            return max(budget - self._spent(db, _account(account)), 0.0)

    @staticmethod
    def _spent(db: sqlite3.Connection, account: str) -> float:
        amounts = db.execute("SELECT amount FROM charges WHERE account = ?", (account,))
        # `fsum` rounds once, so many small charges are not lost.
        return math.fsum(amount for (amount,) in amounts)

    def charge(self, account: str, amount: float, note: str = "") -> float:
        """Charge one account as `charge_all` does; return the amount that it may still spend."""
        return self.charge_all({account: amount}, note)[_account(account)]

    def charge_all(
        self, amounts: Mapping[str, float], note: str | Mapping[str, str] = ""
    ) -> dict[str, float]:
        """Charge several accounts for one release, or refuse and charge none.

        Parameters
        ----------
        amounts : mapping of str to float
            The price of the release, ≥ 0, for each account: the name of a user or a document.
        note : str or mapping of str to str, optional
            A note to store, one for all accounts or one per account; it must hold no private text.

        Returns
        -------
        dict of str to float
            The amount that each account may still spend, by its name in Unicode's form NFC.

        Raises
        ------
        BudgetExceededError
            A charge would exceed the budget of its account; no account is charged.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from fastdx.budget import Ledger
        >>> ledger = Ledger(pathlib.Path(tempfile.mkdtemp()) / "budget.sqlite", budget=30.0)
        >>> ledger.charge_all({"ann": 12.0, "bob": 3.0})
        {'ann': 18.0, 'bob': 27.0}
        """
        notes = {account: note if isinstance(note, str) else note[account] for account in amounts}
        for text in notes.values():
            if not isinstance(text, str):
                raise InputTypeError(f"note must be a str, not {type(text).__name__}")
        left: dict[str, float] = {}
        with self._connect() as db:
            # Other writers must not read sums until all charges, or none, are on disk.
            self._patiently(db, "BEGIN IMMEDIATE")
            budget = self._budget(db) or 0.0
            for name, amount in amounts.items():
                if not (isinstance(amount, int | float) and amount >= 0):
                    raise ParameterError(f"amount must be a number, at least 0, got {amount!r}")
                account, spent = _account(name), self._spent(db, _account(name))
                total = math.fsum([spent, float(amount) if amount < 1e300 else math.inf])
                # The rounding error of a sum is no excess.
                if not total <= budget * (1 + 1e-12):
                    so_far = f"{account!r} has spent {spent:g} of {budget:g}"
                    raise BudgetExceededError(f"{so_far}: {amount:g} more would pass the budget")
                charge = (account, float(amount), notes[name], time.time())
                db.execute(f"INSERT INTO charges ({_FIELDS}) VALUES (?, ?, ?, ?)", charge)
                left[account] = max(budget - total, 0.0)
            db.execute("COMMIT")
        return left

    def privatize(self, mechanism: Mechanism, text: str, *, account: str) -> str:
        """Charge the price of a text, then release it privatised.

        Raises
        ------
        BudgetExceededError
            The text would exceed the budget; nothing is released.
        ParameterError
            No finite number pays for the release, or the text has no word (`allow_wordless`).
        """
        price, why, units = mechanism.guarantee._price(text)
        if text and not any(units) and not self.allow_wordless:
            what = "all of it would be released as it is (allow_wordless=True)"
            raise ParameterError(f"text has no word: {what}")
        if why is not None:
            raise ParameterError(f"mechanism has no price for this release: {why}")
        self.charge(account, price, mechanism.guarantee._note(*units))
        return mechanism.privatize(text)

    def entries(self, account: str | None = None) -> list[Entry]:
        """Return all charges, oldest first, of one account or of all."""
        with self._connect() as db:
            one = () if account is None else (_account(account),)
            where = "WHERE account = ?" if one else ""
            rows = db.execute(f"SELECT {_FIELDS} FROM charges {where} ORDER BY id", one)
            return [Entry(*row) for row in rows]


def _account(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputTypeError(f"account must be a str, not empty, got {name!r}")
    if any("\ud800" <= c <= "\udfff" for c in name):
        raise ParameterError("account must be Unicode, and holds a lone surrogate")
    return unicodedata.normalize("NFC", name)
