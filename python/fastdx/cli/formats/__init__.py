"""Readers and writers of text (here), CSV, TSV, JSON and Parquet, each in its module.

They read files in batches of bounded size, so the memory does not depend on the size of a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from json import loads
from pathlib import Path
from typing import BinaryIO

from fastdx.cli.formats.base import BATCH_CHARACTERS, Batch, Choice, Format
from fastdx.cli.formats.delimited import Delimited, TabSeparated
from fastdx.cli.formats.json import Json, JsonLines
from fastdx.cli.formats.opening import Lines, Opener, bare, between_words, cut, line_end
from fastdx.cli.formats.parquet import Parquet
from fastdx.cli.messages import CommandError

__all__ = ["FORMATS", "Batch", "Choice", "Format", "Opener", "format_named", "format_of", "read"]


class Text(Format):
    """Plain text, whose batches are one text; what is between words is kept byte for byte."""

    name = "text"
    suffixes = (".txt", ".text")
    by_column = False

    def read(self, opener: Opener) -> Iterator[Batch]:
        """Read the file as one text; cuts split no word, number or date."""
        end_of = line_end if self.choice.by_line else between_words
        with opener.open(self.file) as source:
            for lines in cut(source, self.file, BATCH_CHARACTERS, end_of, self.choice.longest):
                yield self._part(lines)

    def _part(self, lines: Lines) -> Batch:
        text = lines.text(self.file)

        def place(_: int, start: int | None = None) -> str:
            if start is None:
                return f"{self.file}, from line {lines.line}"
            return f"{self.file}, line {lines.line + lines.data.count(10, 0, start)}"

        return Batch(lambda: [text], place)

    def write(self, batch: Batch, new: list[str], out: BinaryIO) -> None:
        """Write a part."""
        out.write(new[0].encode())


FORMATS: dict[str, type[Format]] = {
    cls.name: cls for cls in (Text, Delimited, TabSeparated, JsonLines, Json, Parquet)
}


def format_named(name: str) -> type[Format] | None:
    """Return the format of a file's name, or None if the name has no known ending."""
    suffix = Path(bare(name)).suffix.lower()
    return next((cls for cls in FORMATS.values() if suffix in cls.suffixes), None)


def format_of(name: str, opener: Opener, given: str | None = None) -> type[Format]:
    """Return the format of a file, as given, by its name or else by the start of its content.

    A ``.json`` file may hold one document or lines of JSON; both are read as JSON. A file whose
    name has no known ending, and that does not look like Parquet or JSON, is plain text.
    """
    named = FORMATS[given] if given else format_named(name)
    if named is not None:
        return named
    start = opener.start_of(name)
    if start[:4] == b"PAR1":
        return Parquet
    text = start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    line, rest = text.split("\n", 1)[0].rstrip("\r "), text[1:].lstrip()
    if line.startswith("{"):
        with suppress(ValueError, RecursionError):
            loads(line)
            return JsonLines
        # The record continues on further lines, or beyond the bytes read here.
        return Json if rest.startswith('"') or not rest else Text
    return Json if line.startswith("[") and rest.startswith("{") else Text


def read(name: str, format: str | None, column: str | None, opener: Opener) -> Iterator[Batch]:
    """Read a file batch by batch, for commands that only read."""
    kind = format_of(name, opener, format)
    if kind.by_column != (column is not None):
        needs = "needs" if kind.by_column else "takes no"
        raise CommandError(f"{name}: {kind.name} {needs} --column NAME")
    return kind(Choice((column,) if column else (), by_line=True), name).read(opener)
