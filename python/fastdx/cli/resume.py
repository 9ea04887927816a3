"""The record of finished outputs in a folder, for ``--resume``."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, BinaryIO

from fastdx._shared.replace import open_output
from fastdx.cli.messages import CommandError

MANIFEST = ".fastdx-finished.json"
"""The name of the record of finished outputs, their inputs and parameters. It lies beside them."""


def _hash(file: BinaryIO) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    from hashlib import sha256

    digest = sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


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
            found = _hash(file)
        if entry.get("sha256") != found:
            why = "is not what an earlier run wrote"
        elif entry["parameters"] != self.parameters:
            why = "was written under other parameters"
        elif entry["input"] != self._input(name):
            why = "was written from another state of its input"
        else:
            return True
        raise CommandError(
            f"{output} {why}: remove it to draw and pay for it again, or choose another output"
        )

    def save(self, name: str, output: str, file: BinaryIO) -> None:
        """Record an output of an input, with the hash of its file."""
        self._entries[self._key(output)] = {
            "parameters": self.parameters,
            "input": self._input(name),
            "sha256": _hash(file),
        }
        with open_output(str(self._file)) as out:
            out.write(json.dumps({"files": self._entries}, indent=1, sort_keys=True).encode())
