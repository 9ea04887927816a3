"""Plain text, which is cut at white space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from fastdx.cli.formats.base import BATCH_CHARACTERS, Batch, Format
from fastdx.cli.formats.opening import Opener, between_words, cut, line_end


class _Part(Batch):
    """A part of a file; all parts together are one text."""

    def __init__(self, name: str, text: str, line: int) -> None:
        self._name, self._line = name, line
        self.texts = [text]

    def place(self, text: int, start: int | None = None) -> str:
        if start is None:
            return f"{self._name}, from line {self._line}"
        before = self.texts[0].encode()[:start]
        return f"{self._name}, line {self._line + before.count(10)}"


class Text(Format):
    """Plain text; everything between the words is kept byte for byte."""

    name = "text"
    suffixes = (".txt", ".text")
    by_column = False

    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read a file as one text; cuts split no word, number or date."""
        end_of = line_end if self.choice.by_line else between_words
        with opener.open(name) as source:
            for lines in cut(source, name, BATCH_CHARACTERS, end_of, self.choice.longest):
                yield _Part(name, lines.text(name), lines.line)

    def write(self, batch: Batch, out: BinaryIO) -> None:
        """Write a part."""
        out.write(batch.new[0].encode())
