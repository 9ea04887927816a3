"""The base classes of all formats, which read, draw and write records batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import Any, BinaryIO, ClassVar, NamedTuple

from fastdx._core import JsonBlock, Texts
from fastdx.cli.formats.opening import LONGEST_BYTES, Opener
from fastdx.cli.messages import CommandError
from fastdx.exceptions import UnknownWordError

BATCH_CHARACTERS = 3 << 19
"""Characters per batch."""
MOST_NAMES = 100
"""The most names of columns or fields in a message."""


class Released:
    """The columns that an output releases unchanged, and the metadata that it drops."""

    names: dict[str, None]
    """Columns or fields released unchanged, in their order."""
    content: bool
    """Whether the names are content themselves, as in JSON, where every record names its fields."""
    dropped: dict[str, None]
    """Keys of metadata that were dropped."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.names, self.content, self.dropped = {}, False, {}

    def update(self, other: Released) -> None:
        """Add the columns and metadata of another output."""
        self.names |= other.names
        self.content |= other.content
        self.dropped |= other.dropped


class Choice(NamedTuple):
    """The parts of a file to privatise, and how to read the file."""

    columns: tuple[str, ...] = ()
    """Columns or fields of text; nested fields as ``user.comment``, ``items[].text``."""
    account: str | None = None
    """The column that names the account of a record."""
    header: bool = True
    """Whether the first line of CSV or TSV names the columns; if not, columns have numbers."""
    delimiter: str | None = None
    """The sign between fields of CSV; by default a comma."""
    by_line: bool = False
    """Whether plain text is cut at line ends only."""
    longest: int = LONGEST_BYTES
    """The most bytes of a line, a record, or plain text without white space."""


class Draw(ABC):
    """The stage that replaces words."""

    @abstractmethod
    def texts(self, texts: list[str], accounts: Sequence[str] | None = None) -> list[str]:
        """Privatise texts; `accounts` names the account that pays for each."""

    def strings(self, block: JsonBlock) -> Texts | list[str]:
        """Privatise the strings of some JSON records."""
        return self.texts(block.texts())

    @abstractmethod
    def column(self, array: Any, path: list[str], accounts: Sequence[str] | None = None) -> Any:
        """Privatise an Arrow array of text; in structs, the field that the path names."""


class Batch(ABC):
    """Some records of a file. One thread reads them, another draws, a third writes."""

    texts: list[str]
    """The texts to privatise."""
    accounts: list[str] | None = None
    """The account of each text."""
    new: list[str]
    """The privatised texts."""

    @abstractmethod
    def place(self, text: int) -> str:
        """Return the place of a text: file, line, column."""

    def unknown_place(self, error: UnknownWordError) -> str:
        """Return the place of an unknown word."""
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
    """An error in one of the texts of a call."""

    def __init__(self, message: str, text: int) -> None:
        """Store the message and the index of the text, from 0."""
        super().__init__(message)
        self.text = text


class Format(ABC):
    """A format, which makes one output from a file. Each output has its object."""

    name: ClassVar[str]
    """The name of the format for ``--format``."""
    suffixes: ClassVar[tuple[str, ...]]
    """The endings of file names, the usual one first."""
    by_column: ClassVar[bool] = True
    """Whether ``--column`` selects the text."""
    packs: ClassVar[bool] = True
    """Whether a file may be compressed by gzip or zstd."""
    card: str | None = None
    """The channel card of the output, for formats with metadata."""

    def __init__(self, choice: Choice) -> None:
        """Store the choice of columns."""
        self.choice = choice
        self.left = Released()

    @abstractmethod
    def read(self, name: str, opener: Opener) -> Generator[Batch, None, None]:
        """Read a file, in batches of bounded size."""

    @abstractmethod
    def write(self, batch: Any, out: BinaryIO) -> None:
        """Write a privatised batch."""

    def close(self) -> None:  # noqa: B027 (most formats write nothing at the end)
        """Write the end of the output."""

    def abandon(self) -> None:  # noqa: B027
        """Give up an unfinished output; nothing more is written to it."""


def unknown(error: UnknownWordError, place: str) -> CommandError:
    """Return the error about an unknown word, with its place."""
    word = error.word or ""
    message = f"{place}: a word of {len(word)} characters is not in the vocabulary (--oov error)"
    return CommandError(message, repr(word))


def column_of(name: str, header: Sequence[str], column: str) -> int:
    """Return the index of a column by name."""
    if column not in header:
        # In a file without a header the first line is a record, which is content.
        message = f"{name}: none of its {len(header)} columns is called {column!r}"
        raise CommandError(message, listed(header))
    if header.count(column) > 1:
        raise CommandError(f"{name}: {header.count(column)} columns are called {column!r}")
    return header.index(column)


def listed(names: Sequence[str]) -> str:
    """Return names of columns as a list for a message."""
    more = "" if len(names) <= MOST_NAMES else f" and {len(names) - MOST_NAMES} more"
    return ", ".join(names[:MOST_NAMES]) + more


def leaves(value: Any, path: Sequence[str]) -> Iterator[str]:
    """Yield the texts in a Python value that comes from Arrow, in their order."""
    if isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    elif isinstance(value, dict) and path:
        yield from leaves(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield value
