"""The record of finished outputs in a folder, and unfinished outputs, for ``--resume``."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fastdx._shared.replace import mode_of, open_output
from fastdx.cli.drawing import Drawing
from fastdx.cli.formats.base import Batch
from fastdx.cli.messages import Bar, CommandError, tell

MANIFEST = ".fastdx-finished.json"
"""The name of the record of finished outputs, their inputs and parameters. It lies beside them."""


SAVE_SECONDS = 5.0
"""Seconds between two records of the place in an unfinished output."""


class Hashed(io.RawIOBase):
    """A stream that computes the SHA-256 of a file while it is written."""

    def __init__(self, out: BinaryIO) -> None:
        """Start with the bytes that the file has."""
        self._out = out
        if out.readable():
            out.seek(0)
        self._hash = hash_of(out if out.readable() else io.BytesIO())

    def write(self, data: Any) -> int:
        """Write bytes and add them to the hash."""
        self._hash.update(data)
        self._out.write(data)
        return len(data)

    def writable(self) -> bool:
        """Return True."""
        return True

    @property
    def sha256(self) -> str:
        """The hash of all bytes written, in hexadecimal."""
        return str(self._hash.hexdigest())


def hash_of(file: Any) -> Any:
    """Return the SHA-256 of a file, to which more can be added."""
    from hashlib import sha256

    digest = sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest


class Finished:
    """The record of earlier runs into a folder, for ``--resume``.

    The command writes an entry, with the hash of the output, just before it renames the temporary
    file. If the run is killed in between, the entry has no output, and the file is done again. The
    entry identifies the input by size and time. A hash of the input would let a reader confirm
    guesses about short texts.
    """

    def __init__(self, folder: Path, parameters: dict[str, Any]) -> None:
        """Read the record of a folder, if there is one; `parameters` decide the outputs."""
        from hashlib import sha256

        self.folder = folder
        self.parameters = sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()
        self._file = self.folder / MANIFEST
        self._entries: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(FileNotFoundError):
            try:
                self._entries = json.loads(self._file.read_text("utf-8"))["files"]
            except (ValueError, KeyError, TypeError):
                raise CommandError(f"{self._file}: damaged; remove it and the outputs") from None

    def _key(self, output: str) -> str:
        return Path(output).relative_to(self.folder).as_posix()

    @staticmethod
    def _input(name: str) -> list[int]:
        of = Path(name).stat()
        return [of.st_size, of.st_mtime_ns]

    def has(self, name: str, output: str) -> bool:
        """Return whether an output is finished; refuse any other file in its place."""
        if not Path(output).exists():
            return False
        entry = self._entries.get(self._key(output), {})
        with Path(output).open("rb") as file:
            found = hash_of(file).hexdigest()
        self._check(entry, name, output, intact=entry.get("sha256") == found)
        return True

    def _check(self, entry: dict[str, Any], name: str, output: str, *, intact: bool) -> None:
        """Refuse an output that is of somebody else, of other parameters or of another input."""
        if not intact:
            why = "is not what an earlier run wrote"
        elif entry["parameters"] != self.parameters:
            why = "was written under other parameters"
        elif entry["input"] != self._input(name):
            why = "was written from another state of its input"
        else:
            return
        raise CommandError(
            f"{output} {why}: remove it to draw and pay for it again, or choose another output"
        )

    def begun(self, name: str, part: str) -> tuple[int, int]:
        """Return the batches and bytes of an unfinished output that stay."""
        if not Path(part).exists():
            return 0, 0
        entry = self._entries.get(self._key(part), {"bytes": math.inf})
        self._check(entry, name, part, intact=entry["bytes"] <= Path(part).stat().st_size)
        return entry["batches"], entry["bytes"]

    def save(self, name: str, output: str, **more: object) -> None:
        """Record an output of an input; `more` is its hash, or how far it is written."""
        self._entries[self._key(output)] = {
            "parameters": self.parameters,
            "input": self._input(name),
            **more,
        }
        with open_output(str(self._file)) as out:
            out.write(json.dumps({"files": self._entries}, indent=1, sort_keys=True).encode())


class Unfinished:
    """An output that an interruption leaves as a hidden file beside it, and its place in the input.

    Another run reads the batches before that place again, but neither draws nor writes them.
    Whatever was written after the place is cut off, and its texts are drawn again.
    """

    def __init__(self, finished: Finished, name: str, output: str) -> None:
        """Find out how far an earlier run came; refuse a file of other parameters."""
        self._finished, self._name, self._output = finished, name, Path(output)
        self._part = str(self._output.with_name(f".{self._output.name}.part"))
        self._batches, self._bytes = finished.begun(name, self._part)
        self._before = self._batches

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Yield the file, at its place; it gets its name if no exception is raised."""
        # A link in its place is not followed: its name can be known beforehand.
        system = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        made = os.open(self._part, os.O_RDWR | os.O_CREAT | system, 0o600)
        with open(made, "r+b") as self._out:  # noqa: PTH123 (a descriptor)
            self._out.truncate(self._bytes)
            self._out.seek(self._bytes)
            self._save()
            try:
                yield self._out
            except BaseException:
                tell(f"{self._output}: unfinished; the same command with --resume continues")
                raise
            finally:
                self._save()
        Path(self._part).chmod(mode_of(self._output, [self._name]))
        Path(self._part).replace(self._output)

    def rest(
        self, batches: Generator[Batch, None, None], drawing: Drawing, bar: Bar
    ) -> Generator[Batch, None, None]:
        """Yield the batches that are not written yet; the others are only paid for."""
        for number, batch in enumerate(batches):
            drawing.draws = number >= self._before
            if drawing.draws:
                yield batch
                continue
            bar.skip()
            if drawing.bill is not None:
                batch.draw(drawing)

    def wrote(self) -> None:
        """Count a batch, and record the place every few seconds."""
        self._batches, self._bytes = self._batches + 1, self._out.tell()
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._save()

    def _save(self) -> None:
        self._out.flush()
        os.fsync(self._out.fileno())
        self._finished.save(self._name, self._part, batches=self._batches, bytes=self._bytes)
        self._saved = time.monotonic()
