"""JSON: one record per line, an array of records, or one record.

Only the strings to be replaced change. Everything else is copied byte for byte, also white space
and the form of numbers. `fastdx._core` parses; this module opens the files.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import BinaryIO

from fastdx._core import JsonBlock, JsonError, JsonFields, Texts
from fastdx.cli.formats.base import BATCH_CHARACTERS, MOST_NAMES, Batch, Choice, Draw, Format
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


class _JsonFormat(Format):
    """Objects with the fields that the choice names."""

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice)
        self.left.content = True
        try:
            self._fields = JsonFields(choice.columns, choice.account, choice.longest, MOST_NAMES)
        except ValueError as e:
            raise CommandError(str(e)) from None

    def _batch(self, name: str, parse: Callable[[], JsonBlock]) -> Batch:
        """Parse a block; its errors name the file, and its other fields are noted."""
        try:
            block = parse()
        except JsonError as e:
            message, content = e.args
            raise CommandError(f"{name}{message}", content) from None
        for other in block.others:
            if len(self.left.names) < MOST_NAMES:
                self.left.names[other] = None
        return _Records(name, block, self.choice)

    def write(self, batch: _Records, out: BinaryIO) -> None:
        """Write the records."""
        out.write(batch.written())


class JsonLines(_JsonFormat):
    """One JSON object per line."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")

    def read(self, name: str, opener: Opener) -> Generator[Batch, None, None]:
        """Read a file."""
        with opener.open(name) as source:
            lines = cut(source, name, BATCH_CHARACTERS, longest=self.choice.longest)
            # `map` does not hold the bytes of a block while other threads use its records.
            yield from map(partial(self._records, name), lines)

    def _records(self, name: str, lines: Lines) -> Batch:
        """Return the records of a block; a line feed is added if the last line has none."""
        data = lines.data if lines.data.endswith(b"\n") else lines.data + b"\n"
        return self._batch(name, lambda: self._fields.lines(data, lines.line, lines.offset))


class Json(_JsonFormat):
    """An array of objects, or one or several objects one after the other."""

    name = "json"
    suffixes = (".json",)

    def read(self, name: str, opener: Opener) -> Generator[Batch, None, None]:
        """Read a file in pieces; only the size of a record is bounded."""
        document, ended = self._fields.document(), False
        with opener.open(name) as source:
            while not ended:
                # As much as is pending: the parser starts an unfinished record anew each time.
                data = [source.read(max(BATCH_CHARACTERS, document.pending))]
                ended = not data[0]
                # `pop` drops the reference to these bytes while other threads use the records.
                yield self._batch(name, lambda: document.feed(data.pop()))  # noqa: B023
