"""The base classes of all formats, which read and write records batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, NamedTuple

from fastdx._core import Replacements
from fastdx.cli.formats.opening import LONGEST_BYTES, Opener
from fastdx.cli.messages import CommandError
from fastdx.mechanisms import Mechanism

BATCH_CHARACTERS = 3 << 19
"""Characters per batch."""
MOST_NAMES = 100
"""The most names of columns or fields in a message."""


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


class Batch(NamedTuple):
    """Some records of a file."""

    texts: Callable[[], Sequence[str]]
    """Returns the texts to privatise."""
    place: Callable[..., str]
    """Returns the place of a text, by its index, or of a byte in it: file, line, column."""
    payers: Sequence[str] = ()
    """The account of each text, if the choice names a column of accounts."""
    records: Any = None
    """The records, as the format writes them."""


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
    names_are_content: ClassVar[bool] = False
    """Whether every record names its fields, as in JSON, so that their names may be content."""
    card: str | None = None
    """The channel card of the output, for formats with metadata."""

    def __init__(self, choice: Choice, file: str) -> None:
        self.choice = choice
        self.file = file
        self.left: dict[str, None] = {}
        """Columns or fields that the output releases unchanged, in their order."""
        self.dropped: dict[str, None] = {}
        """Keys of metadata that it drops."""

    @abstractmethod
    def read(self, opener: Opener) -> Iterator[Batch]:
        """Read the file, in batches of bounded size."""

    def draw(
        self, batch: Batch, mechanism: Mechanism, kept: Replacements | None = None
    ) -> tuple[Any, Mapping[str, int]]:
        """Privatise the texts of a batch; return what `write` takes, and the counts of words."""
        return mechanism.privatize_counted(batch.texts(), replacements=kept)

    @abstractmethod
    def write(self, batch: Batch, new: Any, out: BinaryIO) -> None:
        """Write the records of a batch with what was drawn."""

    def close(self, *, complete: bool) -> None:  # noqa: B027 (most formats write nothing more)
        """Write the end of the output; nothing if it is given up."""


def column_of(name: str, header: Sequence[str], column: str) -> int:
    """Return the index of a column by name."""
    if column not in header:
        # In a file without a header the first line is a record, which is content.
        more = "" if len(header) <= MOST_NAMES else f" and {len(header) - MOST_NAMES} more"
        message = f"{name}: none of its {len(header)} columns is called {column!r}"
        raise CommandError(message, ", ".join(header[:MOST_NAMES]) + more)
    if header.count(column) > 1:
        raise CommandError(f"{name}: {header.count(column)} columns are called {column!r}")
    return header.index(column)
