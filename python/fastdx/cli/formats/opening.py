"""Opens files, decompresses them, and cuts them into blocks of lines."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fastdx._shared.replace import PACKED, zstd
from fastdx.cli.messages import CommandError

LONGEST_BYTES = 16 << 20
"""The default limit on the bytes of a line, a record, or plain text without white space. It bounds
the memory."""
HINT = " (--max-record allows more)"

WITHOUT_DIGITS = re.compile(
    rb"(?<=[ \n\t])(?:[^0-9 \n\t]+[ \n\t]+){2}(?=(?:[^0-9 \n\t]+[ \n\t]+){2})"
)
"""Two words without digits and the white space behind them, before two others."""
TAIL_BYTES = 1 << 16
"""Bytes at the end of a block in which such words are looked for first."""

ZIPPED = b"\x1f\x8b"
ZSTANDARD = b"\x28\xb5\x2f\xfd"


def bare(name: str) -> str:
    """Return a file's name without ``.gz`` or ``.zst``."""
    path = Path(name)
    return str(path.with_suffix("")) if path.suffix.lower() in PACKED else name


class _Unpacked(io.RawIOBase):
    """A raw stream around a decompressor, whose errors then name the file."""

    def __init__(self, source: Any, name: str) -> None:
        self._source, self._name = source, name

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._source.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._source.read(len(buffer))
        except Exception as e:
            if isinstance(e, OSError) and e.errno is not None:
                raise
            # Decompressors have errors of their own.
            raise CommandError(f"{self._name}: damaged or cut off") from None
        buffer[: len(data)] = data
        return len(data)


class Opener:
    """Opens files ('-' is standard input), and decompresses them."""

    def __init__(self) -> None:
        # Standard input and pipes, which lose data if they are opened twice.
        self._kept: dict[str, io.BufferedReader] = {}

    def open(self, name: str) -> io.BufferedReader:
        """Open a file for reading."""
        if name in self._kept:
            return self._kept.pop(name)
        try:
            file = io.FileIO(0 if name == "-" else name, closefd=name != "-")
        except IsADirectoryError:
            raise CommandError(f"{name} is a folder: --output-dir takes folders") from None
        packed: io.BufferedReader = io.BufferedReader(file, 1 << 20)
        start = packed.peek(4)[:4]
        if start[:2] == ZIPPED:
            import gzip  # most inputs are plain

            return io.BufferedReader(_Unpacked(gzip.GzipFile(fileobj=packed), name), 1 << 20)
        if start == ZSTANDARD:
            return io.BufferedReader(_Unpacked(zstd(packed, "r", name), name), 1 << 20)
        return packed

    def start_of(self, name: str) -> bytes:
        """Return the start of a file's content; `open` still returns it, also for a pipe."""
        source = self.open(name)
        start = source.peek(1 << 16)
        if name == "-" or not Path(name).is_file():
            self._kept[name] = source
        else:
            source.close()
        return start


class Lines(NamedTuple):
    """Some lines of a file, as bytes."""

    data: bytes
    line: int
    """The number of the first line."""
    offset: int
    """The byte of the file at which the first line starts."""

    def text(self, name: str) -> str:
        """Decode the lines; an error names the file, the byte and the line."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as e:
            line = self.line + self.data.count(b"\n", 0, e.start)
            raise CommandError(
                f"{name}: byte {self.offset + e.start} is not UTF-8 (line {line}): "
                "convert it, for example with iconv"
            ) from None


def line_end(data: bytes) -> int:
    """Return the place behind the last line end of some bytes; 0 if there is none."""
    return data.rfind(b"\n") + 1


def between_words(data: bytes) -> int:
    """Return the last place, behind white space, that lies within no number or date; 0 without one.

    A number or date like "3rd of May" has a digit in every two words, so a place between two words
    without digits and two others cuts none. If there is no such place, take the last white space.
    """
    for start in (max(len(data) - TAIL_BYTES, 0), 0):
        if found := [*WITHOUT_DIGITS.finditer(data, start)]:
            return found[-1].end()
    return max(data.rfind(end) for end in (b" ", b"\n", b"\t")) + 1


def cut(
    source: BinaryIO,
    name: str,
    size: int,
    end_of: Callable[[bytes], int] = line_end,
    longest: int = LONGEST_BYTES,
) -> Iterator[Lines]:
    """Yield a file in blocks of about `size` bytes that end where `end_of` says.

    The last block may end in any way. More than `longest` bytes without an end are refused.
    """
    held, offset, line = b"", 0, 1
    # A read as long as what is held copies each byte a few times only, however late an end comes.
    while data := source.read(min(max(size, len(held)), longest + 1 - len(held))):
        held += data
        if end := end_of(held):
            yield Lines(held[:end], line, offset)
            offset += end
            line += held.count(b"\n", 0, end)
            held = held[end:]
        elif len(held) > longest:
            what = "a line end" if end_of is line_end else "white space"
            raise CommandError(
                f"{name}, line {line}: more than {longest} bytes without {what}{HINT}"
            )
    if held:
        yield Lines(held, line, offset)
