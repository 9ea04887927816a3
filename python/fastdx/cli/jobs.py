"""The output of each input file, with checks that the options fit the files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fastdx._shared.card import SUFFIX
from fastdx._shared.replace import PACKED
from fastdx.cli.formats import FORMATS, Choice, Format, Opener, format_named, format_of
from fastdx.cli.formats.opening import bare
from fastdx.cli.messages import CommandError


class InputFile(NamedTuple):
    """An input file, with the path of its output relative to ``--output-dir``."""

    path: str
    relative: Path
    walked: bool
    """Whether the file comes from a folder. False: it was named."""


class Job(NamedTuple):
    """An output and its input."""

    kind: type[Format]
    name: str
    output: str | None


def jobs(args: argparse.Namespace, choice: Choice, opener: Opener) -> tuple[list[Job], int]:
    """Return the jobs, and the number of files of other formats in folders; check the options."""
    kept: dict[InputFile, type[Format]] = {}
    others = 0
    for g in _input_files(args):
        if g.walked and args.format is None:
            named = format_named(g.path)
            if named is None or named.by_column != bool(choice.columns):
                others += 1
                continue
        kept[g] = FORMATS[args.format] if args.format else format_of(g.path, opener)
        _check_kind(choice, kept[g], g.path)
    if not kept:
        raise CommandError("no file to privatise" + (f": {others} have other formats"
                                                     if others else ""))  # fmt: skip
    if args.output_dir:
        if any(g.path == "-" for g in kept):
            raise CommandError("--output-dir goes with files, not with standard input")
        targets = _outputs([*kept], Path(args.output_dir))
        return [Job(kind, g.path, targets[g.path]) for g, kind in kept.items()], others
    if len(kept) > 1:
        raise CommandError("several files at once: --output-dir takes them")
    ((g, kind),) = kept.items()
    _check_output(args, kind)
    return [Job(kind, g.path, args.output)], others


def streams(output: str) -> bool:
    """Return whether an output is a stream, which releases text while it is written."""
    path = Path(output)
    return output == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def _input_files(args: argparse.Namespace) -> list[InputFile]:
    """Return the files that names and folders stand for."""
    names = args.files or ("-",)
    walked = [name for name in names if name != "-" and Path(name).is_dir()]
    given = [file for name in names for file in _named(name)]
    if not args.output_dir:
        if walked:
            raise CommandError(f"{walked[0]} is a folder: --output-dir takes folders")
        return given
    own = Path(args.output_dir).resolve()
    for name in walked:
        if Path(name).resolve() == own:
            raise CommandError(f"{name}: --output-dir would replace an input; choose another")
    # Outputs of an earlier run in a sub-folder are no inputs.
    return [g for g in given if not (g.walked and own in Path(g.path).resolve().parents)]


def _named(name: str) -> Iterator[InputFile]:
    """Yield the file of this name, or those in the folder."""
    path = Path(name)
    if name != "-" and path.is_dir():
        yield from _walk(path)
    else:
        yield InputFile(name, Path("stdin" if name == "-" else path.name), False)


def _walk(folder: Path) -> Iterator[InputFile]:
    """Yield the files in a folder and its sub-folders, without hidden ones."""
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(files):
            path = Path(where) / file
            # A channel card beside a release is not a text.
            card = file.endswith(SUFFIX)
            if not card and not file.startswith(".") and path.is_file():
                yield InputFile(str(path), path.relative_to(folder), True)


def _outputs(given: Sequence[InputFile], folder: Path) -> dict[str, str]:
    """Return the output path of every input by the input's path, and create the folders."""
    made: dict[str, str] = {}
    owner: dict[Path, str] = {}
    inputs = {Path(g.path).resolve() for g in given}
    for g in given:
        target = folder / g.relative
        if target in owner:
            raise CommandError(
                f"{owner[target]} and {g.path} would both become {target}: name their folder, so "
                "that sub-folders are kept"
            )
        if target.resolve() in inputs:
            raise CommandError(f"{target} would replace an input: choose another --output-dir")
        if streams(str(target)):
            raise CommandError(f"{target} is a stream: --output-dir takes files")
        owner[target] = g.path
        made[g.path] = str(target)
    for target in owner:
        target.parent.mkdir(parents=True, exist_ok=True)
    return made


def _check_kind(choice: Choice, kind: type[Format], name: str) -> None:
    """Refuse options that a format does not take."""
    if not kind.by_column and (choice.columns or choice.account):
        option = "--column" if choice.columns else "--account-column"
        raise CommandError(f"{option} goes with CSV, JSON and Parquet (see --format)")
    if kind.by_column and not choice.columns:
        raise CommandError(f"{kind.name} needs --column NAME, the text to privatise "
                           "(--format text privatises all of the file)")  # fmt: skip
    for option, kinds in (("--no-header", ("csv", "tsv")), ("--delimiter", ("csv",))):
        given = not choice.header if option == "--no-header" else choice.delimiter is not None
        if given and kind.name not in kinds:
            raise CommandError(f"{option} goes with {' and '.join(kinds)}, not with {kind.name}")
    if not kind.packs and bare(name) != name:
        raise CommandError(f"{name}: a {kind.name} file is compressed inside, not as {name[-4:]}")


def _check_output(args: argparse.Namespace, kind: type[Format]) -> None:
    """Refuse an output name whose ending belongs to another format."""
    if args.output is None or args.output == "-":
        return
    named = format_named(args.output)
    if named is not None and named is not kind:
        raise CommandError(f"{args.output}: its name says {named.name}, and it would hold "
                           f"{kind.name}")  # fmt: skip
    if Path(args.output).suffix.lower() in PACKED and not kind.packs:
        raise CommandError(f"{args.output}: a {kind.name} file is compressed inside: leave out "
                           f"{Path(args.output).suffix}")  # fmt: skip
