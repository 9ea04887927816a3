"""What all formats share: records that are read, drawn, and written, a batch at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar, Protocol

from fastdx._core import JsonBlock, Texts
from fastdx.cli.formats.opening import LONGEST, Opener
from fastdx.cli.messages import CommandError
from fastdx.exceptions import UnknownWordError

BATCH = 3 << 19
"""Characters that are read, drawn and written at a time."""
MOST_NAMES = 100
"""Names of columns or fields that a message lists at most."""


@dataclass
class Released:
    """What left as it came, and what did not."""

    names: dict[str, None] = field(default_factory=dict)
    """Columns or fields released as they were, in their order."""
    content: bool = False
    """Whether the names are content themselves: JSON's fields, which every record names anew."""
    dropped: dict[str, None] = field(default_factory=dict)
    """Keys of metadata that were dropped."""

    def update(self, other: Released) -> None:
        """Add what another output left."""
        self.names |= other.names
        self.content |= other.content
        self.dropped |= other.dropped


@dataclass(frozen=True)
class Choice:
    """What of a file is to be privatised, and how the file is read."""

    columns: tuple[str, ...] = ()
    """Columns or fields of text; fields within as ``user.comment``, ``items[].text``."""
    account: str | None = None
    """The column that says who pays for a record's texts."""
    header: bool = True
    """Of CSV and TSV: whether the first line names the columns; else they have numbers."""
    delimiter: str | None = None
    """Of CSV: by default a comma."""
    by_line: bool = False
    """Of plain text: cut at line ends only."""
    longest: int = LONGEST
    """Bytes of a line, of a record, or of plain text without white space."""


class Draw(Protocol):
    """What replaces words."""

    def start(self) -> None:
        """Begin another file: of plain text, another text."""

    def texts(self, texts: list[str], accounts: Sequence[str] | None = None) -> list[str]:
        """Privatise texts, for which the accounts pay (one a text)."""

    def strings(self, block: JsonBlock) -> Texts | list[str]:
        """Privatise the strings of some JSON records."""

    def column(self, array: Any, path: list[str], accounts: Sequence[str] | None = None) -> Any:
        """Privatise an Arrow array of text; of structs the field that the path names."""


class Batch(ABC):
    """Some records of a file. Read by one thread, drawn by another, written by a third."""

    texts: list[str]
    """What is to be drawn."""
    accounts: list[str] | None = None
    """Who pays for each of the texts."""
    new: list[str]
    """What was drawn."""

    @abstractmethod
    def place(self, text: int) -> str:
        """Say where the text stands: file, line, column."""

    def unknown_place(self, error: UnknownWordError) -> str:
        """Say where an unknown word stands."""
        return self.place(error.text or 0)

    def draw(self, draw: Draw) -> None:
        """Privatise the texts."""
        try:
            self._draw(draw)
        except UnknownWordError as e:
            raise unknown(e, self.unknown_place(e)) from None
        except TextError as e:
            raise CommandError(f"{self.place(e.text)}: {e}") from None

    def _draw(self, draw: Draw) -> None:
        self.new = draw.texts(self.texts, self.accounts)


class TextError(Exception):
    """Something is wrong with one of the texts of a call."""

    def __init__(self, message: str, text: int) -> None:
        """Keep which text, counted from 0."""
        super().__init__(message)
        self.text = text


class Format(ABC):
    """A format: how one output is made of one or several files of it. An object an output."""

    name: ClassVar[str]
    """As ``--format`` has it."""
    suffixes: ClassVar[tuple[str, ...]]
    """What names of its files end in, the usual one first."""
    by_column: ClassVar[bool] = True
    """Whether columns say what is text."""
    joins: ClassVar[bool] = True
    """Whether several files can become one."""
    packs: ClassVar[bool] = True
    """Whether a file may be gzip or zstd."""
    card: str | None = None
    """The channel card of the output, for formats with metadata."""

    def __init__(self, choice: Choice) -> None:
        """Keep what is to be privatised."""
        self.choice = choice
        self.left = Released()

    @abstractmethod
    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read a file, in batches of bounded size."""

    @abstractmethod
    def write(self, batch: Any, out: BinaryIO) -> None:
        """Write a batch that was drawn."""

    def close(self) -> None:  # noqa: B027 (most have nothing to end with)
        """End the output."""

    def abandon(self) -> None:  # noqa: B027
        """Leave an output that will not be ended: nothing more is written."""


def unknown(error: UnknownWordError, place: str) -> CommandError:
    """Say where an unknown word stands."""
    word = error.word or ""
    message = f"{place}: a word of {len(word)} characters is not in the vocabulary (--oov error)"
    return CommandError(message, repr(word))


LONGEST_NAME = 40
"""Characters of the longest name that a header is taken to have."""
MOST_WORDS = 4
"""Words of such a name."""


def looks_like_header(first: Sequence[str]) -> bool:
    """Return whether a first line can be shown as a header: in a file without one it is a record.

    A header names every column, each by another short name that starts with a letter. Numbers,
    dates, addresses, sentences and empty fields are content.
    """
    return len(set(first)) == len(first) and all(
        name[:1].replace("_", "a").isalpha()
        and name.isprintable()
        and "@" not in name
        and len(name) <= LONGEST_NAME
        and len(name.split()) <= MOST_WORDS
        for name in first
    )


def column_of(name: str, header: Sequence[str], column: str, *, certain: bool = False) -> int:
    """Return which column has a name; `certain` says that the header cannot be a record."""
    if column not in header:
        message = f"{name}: none of its {len(header)} columns is called {column!r}"
        if header and (certain or looks_like_header(header)):
            raise CommandError(f"{message}; they are {listed(header)}")
        raise CommandError(message, ", ".join(map(repr, header)))
    if header.count(column) > 1:
        raise CommandError(f"{name}: {header.count(column)} columns are called {column!r}")
    return header.index(column)


def listed(names: Sequence[str]) -> str:
    """Return names of columns for a message, as the closing line has them."""
    more = "" if len(names) <= MOST_NAMES else f" and {len(names) - MOST_NAMES} more"
    return ", ".join(names[:MOST_NAMES]) + more


def leaves(value: Any, path: Sequence[str]) -> Iterator[str]:
    """Yield the texts of a value that Arrow gave as Python's, in their order."""
    if isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    elif isinstance(value, dict) and path:
        yield from leaves(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield value
