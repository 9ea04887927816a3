"""Streaming text, CSV, TSV, JSON and Parquet through a function on texts: a file a format.

Every reader works on batches of bounded size, so memory stays flat whatever the size of a file.
"""

from __future__ import annotations

from json import loads
from pathlib import Path

from fastdx.cli.formats.base import Choice, Format, Released
from fastdx.cli.formats.delimited import Delimited, TabSeparated
from fastdx.cli.formats.json import Json, JsonLines
from fastdx.cli.formats.opening import Opener, bare
from fastdx.cli.formats.parquet import Parquet
from fastdx.cli.formats.text import Text

__all__ = [
    "FORMATS",
    "Choice",
    "Format",
    "Opener",
    "Released",
    "format_named",
    "format_of",
]

FORMATS: dict[str, type[Format]] = {
    cls.name: cls for cls in (Text, Delimited, TabSeparated, JsonLines, Json, Parquet)
}


def format_named(name: str) -> type[Format] | None:
    """Return the format that a file's name says, if it says one."""
    suffix = Path(bare(name)).suffix.lower()
    return next((cls for cls in FORMATS.values() if suffix in cls.suffixes), None)


def format_of(name: str, opener: Opener) -> type[Format]:
    """Return the format of a file: by its name, or else by how its content starts.

    A ``.json`` file may hold lines of JSON as well: both are read as JSON. What is named as
    nothing else and does not look like Parquet or JSON is plain text.
    """
    named = format_named(name)
    if named is not None:
        return named
    start = opener.start_of(name)
    if start[:4] == b"PAR1":
        return Parquet
    text = start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    line = text.split("\n", 1)[0].rstrip("\r ")
    if line.startswith("{"):
        try:
            loads(line)
        except (ValueError, RecursionError):
            # A record that goes on, over lines or past what was looked at.
            rest = text[1:].lstrip()
            return Json if rest.startswith('"') or not rest else Text
        return JsonLines
    if line.startswith("[") and text[1:].lstrip().startswith("{"):
        return Json
    return Text
