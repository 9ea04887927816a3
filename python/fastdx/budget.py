"""A ledger of privacy spent, that refuses before anything is released."""

from __future__ import annotations

import math
import os
import random
import sqlite3
import stat
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._shared.rounded import up
from fastdx.bags import BagOfWords, bag_tokens
from fastdx.exceptions import (
    FastdxError,
    FastdxWarning,
    FileError,
    InputTypeError,
    ParameterError,
)
from fastdx.mechanisms import Mechanism

__all__ = ["BudgetExceededError", "Entry", "Ledger"]


# Seconds between two looks whether other processes have released the file. The generator is not the
# one that programs seed.
_PAUSE = (0.001, 0.01)
_PAUSES = random.SystemRandom()


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
    every charge is one locked transaction. Only the file's owner can read it.

    Two units must not be mixed in one ledger: ε·words (`privatize` and its like), which is ε per
    unit of distance times the number of words (of distinct words with ``consistent=True``); and
    ε·Σd (`charge_alternatives`), the log-ratio between a text and an alternative to it.

    A release is refused before it is drawn where no finite number pays for it
    (`Guarantee.price`): a mechanism that is seeded, or whose sampler proves nothing, or that
    releases words as they are; a text whose unknown words show as unknown (``oov='drop'``,
    ``'mask'``, ``'error'``, or a mechanism that proves nothing about unknown words).

    Parameters
    ----------
    path : str or os.PathLike
        The SQLite file; made where there is none.
    budget : float, optional
        What an account may spend in all, ≥ 0. It is kept in the file: a smaller one than the
        file's replaces it for all who have the file open, a larger one is refused. If left out,
        the file's own.
    timeout : float, optional
        Seconds to wait for other processes, then a `FileError` is raised and nothing is charged.
    raise_budget : bool, optional
        Allow a larger budget than the file's, and keep it there.
    allow_wordless : bool, optional
        Release texts without a word (numbers of punctuation marks, white space) as they are, for
        nothing. By default they are refused: all of such a text is released.

    Raises
    ------
    ParameterError
        A budget that is larger than the file's, without ``raise_budget=True``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fastdx import Tem
    >>> from fastdx.budget import Ledger
    >>> ledger = Ledger(pathlib.Path(tempfile.mkdtemp()) / "budget.sqlite", budget=30.0)
    >>> private = ledger.privatize(Tem.recommended(), "I like coffee", account="user 7")
    >>> ledger.spent("user 7"), ledger.remaining("user 7")
    (6.75, 23.25)
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
        """Open or make the file."""
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
            kept = self._budget(db) if self._made(db) else None
            if kept is not None and budget in (None, kept):
                return  # nothing to write: others need not wait
            self._patiently(db, "PRAGMA journal_mode=WAL")
            self._patiently(db, "BEGIN IMMEDIATE")
            try:
                self._make(db)
                kept = self._budget(db)
                if budget is None and kept is None:
                    raise ParameterError("budget must be given: the ledger has none")
                budget = kept if budget is None else budget
                assert budget is not None
                if kept is not None and budget > kept and not raise_budget:
                    raise ParameterError(
                        f"budget must be at most the file's, {kept:g}, got {budget:g}: "
                        "raise_budget=True raises it"
                    )
                db.execute("INSERT OR REPLACE INTO terms VALUES ('budget', ?)", (float(budget),))
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise

    def _own_file(self) -> None:
        """Make the file, readable by its owner alone; SQLite's others get the same mode."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            mode = stat.S_IMODE(Path(self.path).stat().st_mode)
            if mode & 0o077:
                message = f"{self.path}: others could read this ledger (mode {mode:o}); now 600"
                warnings.warn(message, FastdxWarning, stacklevel=3)
                for suffix in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        Path(self.path + suffix).chmod(0o600)
        except OSError as e:
            raise FileError(e.errno, e.strerror, self.path) from e

    @staticmethod
    def _make(db: sqlite3.Connection) -> None:
        db.execute(
            "CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, account TEXT NOT NULL,"
            " amount REAL NOT NULL CHECK (amount >= 0), note TEXT NOT NULL, time REAL NOT NULL)"
        )
        db.execute("CREATE INDEX IF NOT EXISTS by_account ON charges (account)")
        if not Ledger._made(db):
            # A file of an earlier version may hold one account under two forms of its name.
            db.create_function("nfc", 1, _nfc, deterministic=True)
            db.execute("UPDATE charges SET account = nfc(account)")
            db.execute("CREATE TABLE terms (name TEXT PRIMARY KEY, value REAL NOT NULL)")

    @staticmethod
    def _made(db: sqlite3.Connection) -> bool:
        """Whether the file has all its tables."""
        found = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'terms'").fetchone()
        return found is not None

    @staticmethod
    def _budget(db: sqlite3.Connection) -> float | None:
        row = db.execute("SELECT value FROM terms WHERE name = 'budget'").fetchone()
        return None if row is None else float(row[0])

    @property
    def budget(self) -> float:
        """What an account may spend in all: what the file says now."""
        with self._connect() as db:
            return self._budget(db) or 0.0

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

    def _patiently(self, db: sqlite3.Connection, statement: str) -> None:
        """Execute a statement that locks the file, once other processes have released it.

        SQLite itself asks the less often the longer it has waited, so that whoever has just come
        is served first: beside ten processes a charge has waited for 15 seconds. Here all ask
        equally often.
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
        """Return what an account has been charged."""
        with self._connect() as db:
            return self._spent(db, _account(account))

    def remaining(self, account: str) -> float:
        """Return what an account may still spend."""
        with self._connect() as db:
            budget = self._budget(db) or 0.0
            return max(budget - self._spent(db, _account(account)), 0.0)

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
            The user or document; its name is taken in Unicode's form NFC.
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
        return self.charge_all({account: amount}, note)[_account(account)]

    def charge_all(
        self, amounts: Mapping[str, float], note: str | Mapping[str, str] = ""
    ) -> dict[str, float]:
        """Charge several accounts for one release, or refuse and charge none.

        Parameters
        ----------
        amounts : mapping of str to float
            What the release costs each account, ≥ 0.
        note : str or mapping of str to str, optional
            What for: the same for all, or one an account. It is stored: no private text.

        Returns
        -------
        dict of str to float
            What is left, by the accounts' names in Unicode's form NFC.

        Raises
        ------
        BudgetExceededError
            One of them would pass the budget; nothing is charged.

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
            # Locks out other writers from the look until the charge is on disk.
            self._patiently(db, "BEGIN IMMEDIATE")
            try:
                budget = self._budget(db) or 0.0
                for name, amount in amounts.items():
                    account = _account(name)
                    left[account] = self._charge(db, account, amount, notes[name], budget)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        return left

    def _charge(
        self, db: sqlite3.Connection, account: str, amount: float, note: str, budget: float
    ) -> float:
        """Charge an account within a transaction; return what is left."""
        if not (isinstance(amount, int | float) and amount >= 0):
            raise ParameterError(f"amount must be a number, at least 0, got {amount!r}")
        amount = float(amount) if amount < 1e300 else math.inf
        spent = self._spent(db, account)
        total = math.fsum([spent, amount])
        # What rounding of a sum can add is no excess.
        if not total <= budget * (1 + 1e-12):
            raise BudgetExceededError(
                f"{account!r} has spent {spent:g} of {budget:g}: {amount:g} more "
                "would pass the budget"
            )
        db.execute(
            "INSERT INTO charges (account, amount, note, time) VALUES (?, ?, ?, ?)",
            (account, float(amount), note, time.time()),
        )
        return max(budget - total, 0.0)

    def privatize(self, mechanism: Mechanism, text: str, *, account: str) -> str:
        """Charge ε for every word of a text, then release it privatised.

        Raises
        ------
        BudgetExceededError
            The text would pass the budget; nothing is released.
        ParameterError
            No finite number pays for the release (`Guarantee.price`), or the text has no word and
            all of it would be released (see `allow_wordless`).
        """
        self._pay(account, mechanism, mechanism.guarantee._price(text), empty=not text)
        return mechanism.privatize(text)

    def privatize_tokens(
        self, mechanism: Mechanism, tokens: Iterable[str], *, account: str
    ) -> list[str]:
        """Charge ε for every word of a list, then release the words privatised.

        Raises as `privatize`.
        """
        tokens = list(tokens)
        self._pay(account, mechanism, mechanism.guarantee._price(tokens), empty=not tokens)
        return mechanism.privatize_tokens(tokens)

    def privatize_ids(
        self, mechanism: Mechanism, ids: ArrayLike, *, account: str
    ) -> NDArray[np.uint32]:
        """Charge ε for every id, then release the ids privatised.

        Raises as `privatize`.
        """
        ids = np.array(ids)  # what is charged for is what is drawn, whoever else holds the array
        self._pay(account, mechanism, mechanism.guarantee._price_ids(ids), empty=not ids.size)
        return mechanism.privatize_ids(ids)

    def privatize_bag(
        self, bags: BagOfWords, bag: Mapping[str, int] | Iterable[str], *, account: str
    ) -> Counter[str]:
        """Charge ε for every word of a bag, then release the bag privatised.

        The log-ratio between two bags of N words is ε·N·E, N·E the sum of the distances of the
        words that the best matching pairs: the same unit as that of `privatize`.

        Raises as `privatize`.
        """
        tokens = bag_tokens(bag)
        priced = bags.mechanism.guarantee._price(tokens)
        self._pay(account, bags.mechanism, priced, empty=not tokens)
        return bags.privatize(tokens)

    def _pay(
        self,
        account: str,
        mechanism: Mechanism,
        priced: tuple[float, str | None, int],
        *,
        empty: bool,
    ) -> None:
        """Charge a release, or refuse it: `empty` says that nothing would be released."""
        price, why, words = priced
        if not words and not empty and not self.allow_wordless:
            raise ParameterError(
                "text has no word: all of it would be released as it is (allow_wordless=True)"
            )
        if why is not None:
            raise ParameterError(f"mechanism has no price for this release: {why}")
        self.charge(account, price, f"{words} words at ε = {up(mechanism.epsilon)}")

    def charge_alternatives(
        self, mechanism: Mechanism, text: str, alternatives: Iterable[str], *, account: str
    ) -> float:
        """Charge the largest log-ratio between a text and alternatives to it: ε·Σd.

        An observer who cannot tell the text from any of these by more than that learns no more.

        Returns
        -------
        float
            What was charged.

        Raises
        ------
        ParameterError
            Nothing is proved about one of the alternatives: it has another number of words, say,
            or other punctuation.
        BudgetExceededError
            It would pass the budget.
        """
        if isinstance(alternatives, str):
            raise InputTypeError("alternatives must be a list of str, not str")
        bounds = [mechanism.guarantee.bound(text, a) for a in alternatives]
        if not bounds:
            raise ParameterError("alternatives must be at least one text, got none")
        _, why, _ = mechanism.guarantee._price(text)
        if why is not None:
            raise ParameterError(f"mechanism has no price for this release: {why}")
        if not math.isfinite(max(bounds)):
            at = bounds.index(max(bounds))
            raise ParameterError(f"alternatives[{at}] differs from the text in what is no word, "
                                 "in the number of words, or in words without a bound")  # fmt: skip
        self.charge(account, max(bounds), f"{len(bounds)} alternatives")
        return max(bounds)

    def entries(self, account: str | None = None) -> list[Entry]:
        """Return all charges, oldest first, of one account or of all."""
        with self._connect() as db:
            where, values = ("", ()) if account is None else ("WHERE account = ?", (_nfc(account),))
            rows = db.execute(
                f"SELECT account, amount, note, time FROM charges {where} ORDER BY id",
                values,
            )
            return [Entry(*row) for row in rows]


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _account(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputTypeError(f"account must be a str, not empty, got {name!r}")
    return _nfc(name)
