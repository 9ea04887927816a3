"""Texts of records privatised in batches of bounded size; what was left as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastdx.cli.messages import CommandError
from fastdx.exceptions import UnknownWordError

BATCH = 4 << 20
"""Characters of text privatised in one call."""
MOST_NAMES = 100
"""Names of untouched fields that the closing line lists at most."""

Privatise = Callable[[list[str]], list[str]]


@dataclass
class Released:
    """What left as it came, and what did not."""

    names: list[str]
    """Columns or fields released as they were."""
    content: bool = False
    """Whether the names are content themselves: JSON's fields, which every record names anew."""
    dropped: list[str] = field(default_factory=list)
    """Keys of metadata that were dropped."""


def unknown(error: UnknownWordError, place: str) -> CommandError:
    """Say where an unknown word stands."""
    word = error.word or ""
    message = f"{place}: a word of {len(word)} characters is not in the vocabulary (--oov error)"
    return CommandError(message, repr(word))


@dataclass
class Row:
    """A record, where it stands (a line, or row of a table), and the texts in it."""

    line: int
    record: Any
    texts: list[str]


def batches(
    name: str,
    rows: Iterable[Row],
    columns: Sequence[str],
    private: Privatise,
    *,
    unit: str = "line",
) -> Iterator[Row]:
    """Privatise the texts of rows in batches, yielding each row with its new texts."""
    waiting: list[Row] = []
    size = 0

    def flush() -> Iterator[Row]:
        texts = [text for row in waiting for text in row.texts]
        try:
            new = iter(private(texts))
        except UnknownWordError as e:
            raise unknown(e, place_of(name, unit, waiting, columns, e.text or 0)) from None
        except UnicodeEncodeError:
            half = next(i for i, t in enumerate(texts) if any("\ud800" <= c <= "\udfff" for c in t))
            place = place_of(name, unit, waiting, columns, half)
            raise CommandError(f"{place}: the text holds half of a surrogate pair") from None
        for row in waiting:
            row.texts = [next(new) for _ in row.texts]
            yield row
        waiting.clear()

    for row in rows:
        waiting.append(row)
        size += 64 + sum(map(len, row.texts))
        if size >= BATCH:
            yield from flush()
            size = 0
    yield from flush()


def place_of(name: str, unit: str, rows: Sequence[Row], columns: Sequence[str], text: int) -> str:
    """Where the n-th text of some rows stands."""
    for row in rows:
        if text < len(row.texts):
            column = f", column {columns[text]!r}" if len(row.texts) == len(columns) else ""
            return f"{name}, {unit} {row.line}{column}"
        text -= len(row.texts)
    return name


def column_of(name: str, header: Sequence[str], column: str) -> int:
    if column not in header:
        # Of a file without a header these are the first record.
        message = f"{name}: none of its {len(header)} columns is called {column!r}"
        raise CommandError(message, ", ".join(map(repr, header)))
    if header.count(column) > 1:
        raise CommandError(f"{name}: {header.count(column)} columns are called {column!r}")
    return header.index(column)
