"""The output of each input file, and the record of finished outputs for ``--resume``."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fastdx._shared.card import SUFFIX
from fastdx._shared.replace import open_output
from fastdx.cli.formats import Choice, Format, Opener, format_named, format_of
from fastdx.cli.formats.opening import bare
from fastdx.cli.messages import CommandError

MANIFEST = ".fastdx-finished.json"
"""The name of the record of finished outputs, their inputs and parameters. It lies beside them."""


class Job(NamedTuple):
    """An output and its input."""

    kind: type[Format]
    name: str
    output: str | None


def jobs(args: argparse.Namespace, choice: Choice, opener: Opener) -> tuple[list[Job], int]:
    """Return the jobs, and the number of files of other formats in folders; check the options."""
    found: dict[str, Path] = {}  # the path of an output in --output-dir, by the input
    others = 0
    for name in args.files or ["-"]:
        if name == "-" or not Path(name).is_dir():
            found[name] = Path("stdin" if name == "-" else Path(name).name)
            continue
        if not args.output_dir:
            raise CommandError(f"{name} is a folder: --output-dir takes folders")
        for path in _walk(Path(name), Path(args.output_dir)):
            kind = format_named(str(path))
            if args.format or (kind is not None and kind.by_column == bool(choice.columns)):
                found[str(path)] = path.relative_to(name)
            else:
                others += 1
    if not found:
        raise CommandError("no file to privatise" + (f": {others} have other formats"
                                                     if others else ""))  # fmt: skip
    outputs = _targets(found, Path(args.output_dir)) if args.output_dir else [args.output]
    if len(found) > len(outputs):
        raise CommandError("several files at once: --output-dir takes them")
    made = [
        Job(format_of(name, opener, args.format), name, output)
        for name, output in zip(found, outputs, strict=True)
    ]
    for job in made:
        _check(job, choice)
    named, kind = format_named(args.output or "-"), made[0].kind
    if named is not None and named is not kind:
        raise CommandError(f"{args.output}: its name says {named.name}, and it would hold "
                           f"{kind.name}")  # fmt: skip
    if args.output_dir:
        for output in outputs:
            Path(output).parent.mkdir(parents=True, exist_ok=True)
    return made, others


def streams(output: str) -> bool:
    """Return whether an output is a stream, which releases text while it is written."""
    path = Path(output)
    return output == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def _walk(folder: Path, outputs: Path) -> Iterator[Path]:
    """Yield the files in a folder and its sub-folders, without hidden ones, cards and outputs."""
    if folder.resolve() == outputs.resolve():
        raise CommandError(f"{folder}: --output-dir would replace an input; choose another")
    for where, folders, files in os.walk(folder):
        here = Path(where)
        shown = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in shown if (here / name).resolve() != outputs.resolve()]
        for file in sorted(files):
            # A channel card beside a release is not a text.
            if not file.startswith(".") and not file.endswith(SUFFIX) and (here / file).is_file():
                yield here / file


def _targets(found: dict[str, Path], folder: Path) -> list[str]:
    """Return the output of every input."""
    if "-" in found:
        raise CommandError("--output-dir goes with files, not with standard input")
    owner: dict[Path, str] = {}
    inputs = {Path(name).resolve() for name in found}
    for name, relative in found.items():
        target = folder / relative
        if target in owner:
            raise CommandError(
                f"{owner[target]} and {name} would both become {target}: name their folder, so "
                "that sub-folders are kept"
            )
        if target.resolve() in inputs:
            raise CommandError(f"{target} would replace an input: choose another --output-dir")
        if streams(str(target)):
            raise CommandError(f"{target} is a stream: --output-dir takes files")
        owner[target] = name
    return [str(target) for target in owner]


def _check(job: Job, choice: Choice) -> None:
    """Refuse options and names that a format does not take."""
    kind = job.kind
    if not kind.by_column and (choice.columns or choice.account):
        option = "--column" if choice.columns else "--account-column"
        raise CommandError(f"{option} goes with CSV, JSON and Parquet (see --format)")
    if kind.by_column and not choice.columns:
        raise CommandError(f"{kind.name} needs --column NAME, the text to privatise "
                           "(--format text privatises all of the file)")  # fmt: skip
    for option, given, kinds in (("--no-header", not choice.header, ("csv", "tsv")),
                                 ("--delimiter", choice.delimiter, ("csv",))):  # fmt: skip
        if given and kind.name not in kinds:
            raise CommandError(f"{option} goes with {' and '.join(kinds)}, not with {kind.name}")
    for name in (job.name, job.output or "-"):
        if not kind.packs and bare(name) != name:
            how = Path(name).suffix
            raise CommandError(f"{name}: a {kind.name} file is compressed inside, not as {how}")


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
        try:
            if self._file.exists():
                self._entries = json.loads(self._file.read_text("utf-8"))["files"]
        except (ValueError, KeyError, TypeError):
            raise CommandError(f"{self._file}: damaged; remove it and the outputs") from None

    def _key(self, output: str) -> str:
        return Path(output).relative_to(self.folder).as_posix()

    def _entry(self, name: str, file: BinaryIO) -> dict[str, Any]:
        """Return what the record says of an input and the file that was made of it."""
        from hashlib import sha256

        digest, of = sha256(), Path(name).stat()
        while block := file.read(1 << 20):
            digest.update(block)
        return {
            "sha256": digest.hexdigest(),
            "parameters": self.parameters,
            "input": [of.st_size, of.st_mtime_ns],
        }

    def has(self, name: str, output: str) -> bool:
        """Return whether an output is finished; refuse any other file in its place."""
        if not Path(output).exists():
            return False
        entry = self._entries.get(self._key(output), {})
        with Path(output).open("rb") as file:
            found = self._entry(name, file)
        for key, why in (("sha256", "is not what an earlier run wrote"),
                         ("parameters", "was written under other parameters"),
                         ("input", "was written from another state of its input")):  # fmt: skip
            if entry.get(key) != found[key]:
                raise CommandError(f"{output} {why}: remove it to draw and pay for it again, or "
                                   "choose another output")  # fmt: skip
        return True

    def save(self, name: str, output: str, file: BinaryIO) -> None:
        """Record an output of an input, with the hash of its file."""
        self._entries[self._key(output)] = self._entry(name, file)
        with open_output(str(self._file)) as out:
            out.write(json.dumps({"files": self._entries}, indent=1, sort_keys=True).encode())
