"""JSON: one record per line, an array of records, or one record.

Only the strings to be replaced change. Everything else is copied byte for byte, also white space
and the form of numbers. `fastdx._core` parses; this module opens the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, ClassVar

from fastdx._core import JsonBlock, JsonError, JsonFields
from fastdx.cli.formats.base import BATCH_CHARACTERS, MOST_NAMES, Batch, Choice, Format
from fastdx.cli.formats.opening import Opener, cut
from fastdx.cli.messages import CommandError


class Json(Format):
    """An array of objects, or one or several objects one after the other."""

    name = "json"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    names_are_content = True

    def __init__(self, choice: Choice, file: str) -> None:
        super().__init__(choice, file)
        try:
            self._fields = JsonFields(choice.columns, choice.account, choice.longest, MOST_NAMES)
        except ValueError as e:
            raise CommandError(str(e)) from None

    def read(self, opener: Opener) -> Iterator[Batch]:
        """Read the file, block by block; errors name it, and other fields are noted."""
        with opener.open(self.file) as source:
            try:
                for block in self._blocks(source):
                    for other in block.others:
                        if len(self.left) < MOST_NAMES:
                            self.left[other] = None
                    place = partial(self._place, block)
                    yield Batch(block.texts, place, block.payers(), block)
            except JsonError as e:
                message, content = e.args
                raise CommandError(f"{self.file}{message}", content) from None

    def _place(self, block: JsonBlock, text: int, _: int = 0) -> str:
        line, column = block.place(text) or (0, 0)
        return f"{self.file}, line {line}, column {self.choice.columns[column]!r}"

    def _blocks(self, source: BinaryIO) -> Iterator[JsonBlock]:
        """Parse the file in pieces; only the size of a record is bounded."""
        document, data = self._fields.document(), b"unread"
        while data:
            # As much as is pending: the parser starts an unfinished record anew each time.
            data = source.read(max(BATCH_CHARACTERS, document.pending))
            yield document.feed(data)

    def write(self, batch: Batch, new: list[str], out: BinaryIO) -> None:
        """Write the records."""
        out.write(batch.records.replaced(new))


class JsonLines(Json):
    """One JSON object per line."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")

    def _blocks(self, source: BinaryIO) -> Iterator[JsonBlock]:
        """Parse blocks of lines; a line feed is added if the last line has none."""
        for lines in cut(source, self.file, BATCH_CHARACTERS, longest=self.choice.longest):
            data = lines.data if lines.data.endswith(b"\n") else lines.data + b"\n"
            yield self._fields.lines(data, lines.line, lines.offset)
