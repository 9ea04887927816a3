"""Files opened, unzipped, decoded, cut into lines."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from fastdx.cli.messages import CommandError, Progress

LONGEST = 64 << 20
"""Bytes of a line, or of plain text without white space, beyond which input is refused: memory
must stay flat."""


def format_of(name: str) -> str:
    """Return the format that a file's name suggests: csv, tsv, jsonl, parquet or text."""
    suffixes = Path(name.removesuffix(".gz")).suffix.lower()
    known = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    return "parquet" if suffixes in (".parquet", ".pq") else known.get(suffixes, "text")


class _Counting(io.RawIOBase):
    """A raw stream that reports what is read from it."""

    def __init__(self, raw: BinaryIO, progress: Progress) -> None:
        self._raw = raw
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._progress(len(data))
        return len(data)

    def close(self) -> None:
        if self._raw is not sys.stdin.buffer:
            self._raw.close()
        super().close()


def open_input(name: str, progress: Progress) -> BinaryIO:
    """Open a file ('-': standard input) for reading bytes, unzipping gzip by its content."""
    raw: BinaryIO = sys.stdin.buffer if name == "-" else Path(name).open("rb")  # noqa: SIM115
    buffered = io.BufferedReader(_Counting(raw, progress), 1 << 20)
    if buffered.peek(2)[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    return buffered


def decode(data: bytes, name: str, offset: int) -> str:
    """Decode UTF-8 that stands at a byte of a file."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise CommandError(f"{name}: byte {offset + e.start} is not UTF-8") from None


def lines_of(source: BinaryIO, name: str) -> Iterator[str]:
    """Yield lines with their line ends; only a line feed ends a line."""
    offset = 0
    while line := source.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise CommandError(f"{name}: a line of more than {LONGEST} bytes at byte {offset}")
        text = decode(line, name, offset)
        yield text if offset else text.removeprefix("\ufeff")
        offset += len(line)


def total_size(names: Sequence[str]) -> int | None:
    """Return the bytes of all input files, or None when one has no size."""
    if any(name == "-" for name in names):
        return None
    return sum(Path(name).stat().st_size for name in names)
