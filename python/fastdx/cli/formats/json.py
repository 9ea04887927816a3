"""JSON: one record per line, an array of records, or one record.

Only the strings to be replaced change. Everything else is copied byte for byte, also white space
and the form of numbers. `fastdx._core` parses; this module opens the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from fastdx._core import JsonBlock, JsonError, JsonFields, Texts
from fastdx.cli.formats.base import BATCH, MOST_NAMES, Batch, Choice, Draw, Format, Released
from fastdx.cli.formats.opening import Lines, Opener, cut
from fastdx.cli.messages import CommandError


class _Records(Batch):
    """A block of JSON text, with the strings to be replaced."""

    new: Texts | list[str]  # type: ignore[assignment]  # `replaced` accepts both

    def __init__(self, name: str, block: JsonBlock, choice: Choice) -> None:
        self._name = name
        self._block = block
        self._choice = choice

    def _draw(self, draw: Draw) -> None:
        if self._choice.account is None:
            self.new = draw.strings(self._block)
        else:
            self.new = draw.texts(self._block.texts(), self._block.payers())

    def place(self, text: int) -> str:
        line, column = self._block.place(text) or (0, 0)
        return f"{self._name}, line {line}, column {self._choice.columns[column]!r}"

    def written(self) -> bytes:
        """Return the bytes to write."""
        return self._block.replaced(self.new)


def _fields(choice: Choice) -> JsonFields:
    try:
        return JsonFields(choice.columns, choice.account, choice.longest, MOST_NAMES)
    except ValueError as e:
        raise CommandError(str(e)) from None


def _refused(name: str, error: JsonError) -> CommandError:
    """Return a JSON error as a CommandError that names the file."""
    message, content = error.args
    return CommandError(f"{name}{message}", content)


def _note(left: Released, block: JsonBlock) -> None:
    """Note the names of other fields, at most `MOST_NAMES`."""
    for other in block.others:
        if len(left.names) < MOST_NAMES:
            left.names[other] = None


class JsonLines(Format):
    """One JSON object per line."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")

    def __init__(self, choice: Choice) -> None:
        """Check the fields."""
        super().__init__(choice)
        self.left.content = True
        self._fields = _fields(choice)

    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read a file."""
        with opener.open(name) as source:
            lines = cut(source, name, BATCH, longest=self.choice.longest)
            # `map` does not hold the bytes of a block while other threads use its records.
            yield from map(partial(self._records, name), lines)

    def _records(self, name: str, lines: Lines) -> Batch:
        """Return the records of a block; a line feed is added if the last line has none."""
        data = lines.data if lines.data.endswith(b"\n") else lines.data + b"\n"
        try:
            block = self._fields.lines(data, lines.line, lines.offset)
        except JsonError as e:
            raise _refused(name, e) from None
        _note(self.left, block)
        return _Records(name, block, self.choice)

    def write(self, batch: _Records, out: BinaryIO) -> None:
        """Write the records."""
        out.write(batch.written())


class Json(Format):
    """An array of objects, or one or several objects one after the other."""

    name = "json"
    suffixes = (".json",)
    joins = False

    def __init__(self, choice: Choice) -> None:
        """Check the fields."""
        super().__init__(choice)
        self.left.content = True
        self._fields = _fields(choice)

    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read a file in pieces; only the size of a record is bounded."""
        with opener.open(name) as source:
            yield from self._batches(name, source)

    def _batches(self, name: str, source: BinaryIO) -> Iterator[Batch]:
        document, ended = self._fields.document(), False
        while not ended:
            # As much again as is pending: the parser starts an unfinished record anew each time.
            data = source.read(max(BATCH, document.pending))
            ended = not data
            try:
                block = document.feed(data)
            except JsonError as e:
                raise _refused(name, e) from None
            del data
            _note(self.left, block)
            yield _Records(name, block, self.choice)

    def write(self, batch: _Records, out: BinaryIO) -> None:
        """Write the records."""
        out.write(batch.written())
