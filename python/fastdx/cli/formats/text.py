"""Plain text, which is cut at white space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from fastdx.cli.formats.base import BATCH_CHARACTERS, Batch, Draw, Format
from fastdx.cli.formats.opening import Opener, between_words, cut, line_end
from fastdx.exceptions import UnknownWordError


class _Part(Batch):
    """A part of a file; all parts together are one text."""

    def __init__(self, name: str, text: str, line: int, *, first: bool) -> None:
        self.texts = [text]
        self._first = first
        self._name = name
        self._line = line

    def place(self, text: int) -> str:
        return f"{self._name}, from line {self._line}"

    def unknown_place(self, error: UnknownWordError) -> str:
        before = self.texts[0].encode()[: error.start or 0]
        return f"{self._name}, line {self._line + before.count(10)}"

    def draw(self, draw: Draw) -> None:
        if self._first:
            draw.start()
        super().draw(draw)


class Text(Format):
    """Plain text; everything between the words is kept byte for byte."""

    name = "text"
    suffixes = (".txt", ".text")
    by_column = False

    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read a file as one text; cuts split no word, number or date."""
        end_of = line_end if self.choice.by_line else between_words
        first = True
        with opener.open(name) as source:
            for lines in cut(source, name, BATCH_CHARACTERS, end_of, self.choice.longest):
                yield _Part(name, lines.text(name), lines.line, first=first)
                first = False

    def write(self, batch: Batch, out: BinaryIO) -> None:
        """Write a part."""
        out.write(batch.new[0].encode())
