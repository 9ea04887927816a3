"""``fastdx evaluate``: attacks and tasks on the user's own texts, on a page."""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from fastdx.cli import policies
from fastdx.cli.formats import FORMATS, Opener, format_of
from fastdx.cli.formats.opening import Block, blocks
from fastdx.cli.messages import Bar, CommandError
from fastdx.cli.options import (
    MechanismOptions,
    examples,
    given_of_mechanism,
    mechanism_group,
    show_text,
)

if TYPE_CHECKING:
    from fastdx.cli.options import _Commands

LONGEST = 64 << 20
"""Bytes of a line at most. The whole file is held."""

EXAMPLES = """
  fastdx evaluate reviews.jsonl --label-column stars -o page.html
  fastdx evaluate mails.csv --text-column body --author-column from --epsilon 2 --cover 40 \\
      --balance 0.1 -o page.html
  fastdx evaluate mails.csv --text-column body --policy policies.toml -o page.html
"""


def add(commands: _Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "evaluate",
        help="attack texts of your own, and learn from them, with and without privacy",
        description="Run attacks and tasks on your own texts: which words an attacker names, "
        "alone, in sentences and repeated; who wrote a text; whose texts a model learned from; "
        "how well it learns. Several policies are judged on the same splits of the texts. Writes a "
        "page, and JSON beside it, without any of the texts. Needs scikit-learn: pip install "
        "'fastdx[experiments]'.",
        **examples(EXAMPLES),
    )
    p.add_argument("files", nargs="+", metavar="FILE", help="JSONL, JSON, CSV, TSV or Parquet")
    p.add_argument("--epsilon", type=float, help="ε per unit of distance; by default the "
                   "recommended policy is judged")  # fmt: skip
    group = p.add_argument_group("policies")
    group.add_argument("--policy", metavar="FILE", help="named mechanisms in TOML, as for the "
                       "service (docs/service.md), in the place of --epsilon and of all options "
                       "of the mechanism")  # fmt: skip
    group.add_argument("--only", action="append", default=[], metavar="NAME", help="a policy of "
                       "the file that is judged; repeatable (default all)")  # fmt: skip
    group = p.add_argument_group("input")
    group.add_argument("--format", choices=tuple(f for f in FORMATS if f != "text"),
                       help="by default from the files' names, or else their content")  # fmt: skip
    group.add_argument("--text-column", default="text", metavar="NAME",
                       help="column or field of the text (default %(default)s)")  # fmt: skip
    group.add_argument("--label-column", metavar="NAME", help="of a label that is to be learned: "
                       "for the task and for membership inference")  # fmt: skip
    group.add_argument("--author-column", metavar="NAME", help="of who wrote it: for authorship")
    group.add_argument("--encoding", metavar="NAME", help="of the input (default utf-8)")
    group = p.add_argument_group("measuring")
    group.add_argument("--sample", type=int, default=5000, metavar="N",
                       help="texts used, drawn by chance (0: all; default "
                       "%(default)s)")  # fmt: skip
    group.add_argument("--trials", type=int, default=5, help="splits of the texts, each with "
                       "fresh draws (default %(default)s)")  # fmt: skip
    group.add_argument("--attacked", type=int, default=100, metavar="N", help="texts whose "
                       "sentences are attacked in a trial, and words that are repeated "
                       "(default %(default)s)")  # fmt: skip
    group.add_argument("--no-network", action="store_true", help="leave out the neural network "
                       "that attacks sentences, which takes most of the time")  # fmt: skip
    group.add_argument("--split-seed", type=int, default=0, metavar="SEED", help="of splits and "
                       "samples (default %(default)s); --seed is the mechanism's")  # fmt: skip
    group = p.add_argument_group("output")
    group.add_argument("-o", "--output", required=True, metavar="FILE", help="an HTML page; JSON "
                       "is written beside it")  # fmt: skip
    group.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress")
    show_text(group)
    mechanism_group(p)
    p.set_defaults(run=_evaluate)


def _evaluate(args: argparse.Namespace) -> None:
    try:
        from fastdx.evaluation import evaluate
    except ImportError:
        message = "evaluate needs scikit-learn: pip install 'fastdx[experiments]'"
        raise CommandError(message) from None
    if args.mechanism == "bag":
        raise CommandError("evaluate takes mechanisms of words, not --mechanism bag")
    if args.epsilon is not None and args.policy is not None:
        raise CommandError("--epsilon and --policy exclude each other")
    if args.only and not args.policy:
        raise CommandError("--only goes with --policy")
    given = given_of_mechanism(args) + (["--spec"] if args.spec else [])
    if args.policy and given:
        raise CommandError(f"--policy says which mechanism: not with {', '.join(given)}")
    if args.sample < 0:
        raise CommandError(f"--sample must be at least 0, got {args.sample}")
    rows, left_out = _rows(args)
    if 0 < args.sample < len(rows):
        rng = np.random.default_rng(args.split_seed)
        rows = [rows[i] for i in sorted(rng.permutation(len(rows))[: args.sample].tolist())]
    judged = (
        policies.mechanisms(args.policy, args.only)
        if args.policy
        else MechanismOptions.of(args).make()
    )

    def progress(line: str) -> None:
        if not args.quiet:
            print(f"fastdx: {line}", file=sys.stderr)

    def column(name: str | None) -> list[str] | None:
        return None if name is None else [row[name] for row in rows]

    found = evaluate(
        judged, [row[args.text_column] for row in rows], labels=column(args.label_column),
        authors=column(args.author_column), trials=args.trials, attacked=args.attacked,
        seed=args.split_seed, network=not args.no_network, progress=progress,
        command=shlex.join(["fastdx", *sys.argv[1:]]),
    )  # fmt: skip
    if left_out:
        found.notes.append(f"{left_out:,} records without text, label or author were left out.")
    if args.policy:
        found.notes.append("Whole texts were privatised, also under policies that ask for spans.")
    found.write(args.output)
    print(found.to_markdown() if args.markdown else found)


def _rows(args: argparse.Namespace) -> tuple[list[dict[str, str]], int]:
    """Return the records that have all that was asked for, and how many have not."""
    asked = [args.text_column, args.label_column, args.author_column]
    columns = [name for name in asked if name is not None]
    if len(set(columns)) < len(columns):
        raise CommandError("--text-column, --label-column and --author-column must differ")
    opener = Opener(Bar(None, True), args.encoding)
    rows, left_out = [], 0
    for name in args.files:
        kind = args.format or format_of(name, opener).name
        if kind == "text":
            raise CommandError(f"{name}: plain text has no columns (see --format)")
        for at, record in _records(name, kind, opener, columns):
            row = {}
            for column in columns:
                value = record.get(column)
                if column not in record:
                    message = f"{at}: none of its {len(record)} fields is called {column!r}"
                    raise CommandError(message, ", ".join(map(repr, record)))
                if value is None or value == "":
                    continue
                if column == args.text_column and not isinstance(value, str):
                    kind_of = type(value).__name__
                    raise CommandError(f"{at}: field {column!r} holds a {kind_of}, not text")
                if not isinstance(value, (str, int, float, bool)):
                    kind_of = type(value).__name__
                    raise CommandError(f"{at}: field {column!r} holds a {kind_of}, no label")
                row[column] = str(value)
            if len(row) == len(columns):
                rows.append(row)
            else:
                left_out += 1
    return rows, left_out


def _records(
    name: str, kind: str, opener: Opener, columns: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every record, and where it stands."""
    if kind == "parquet":
        yield from _parquet(name, columns)
        return
    with opener.open(name) as source:
        if kind in ("csv", "tsv"):
            yield from _delimited(name, source, kind)
            return
        if kind == "jsonl":
            for block in _blocks(source, name):
                yield from _json_lines(name, block.text, block.line)
            return
        text = "".join(block.text for block in _blocks(source, name))
    # A .json file may hold lines as well.
    if text.lstrip().startswith("{"):
        yield from _json_lines(name, text, 1)
        return
    every = _parsed(name, text)
    if not isinstance(every, list):
        raise CommandError(f"{name}: not an array of JSON objects")
    for number, record in enumerate(every, 1):
        yield _object(f"{name}, record {number}", record)


def _blocks(source: BinaryIO, name: str) -> Iterator[Block]:
    return blocks(source, name, 1 << 20, longest=LONGEST, hint="")


def _delimited(name: str, source: BinaryIO, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = (
        line
        for block in _blocks(source, name)
        for line in block.text.removeprefix("\ufeff").splitlines(keepends=True)
    )
    csv.field_size_limit(LONGEST)
    if kind == "tsv":
        reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    else:
        reader = csv.DictReader(lines, strict=True)
    try:
        for record in reader:
            at = f"{name}, line {reader.line_num}"
            if None in record or None in record.values():
                raise CommandError(f"{at}: not as many fields as the header has")
            yield at, record
    except csv.Error as e:
        raise CommandError(f"{name}, line {reader.line_num}: {e}") from None


def _json_lines(name: str, text: str, first: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), first):
        if line.strip():
            at = f"{name}, line {number}"
            yield _object(at, _parsed(at, line))


def _parsed(at: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        where = f" at character {e.pos}" if isinstance(e, json.JSONDecodeError) else ""
        raise CommandError(f"{at}: not JSON{where}") from None


def _object(at: str, record: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(record, dict):
        raise CommandError(f"{at}: not a JSON object")
    return at, record


def _parquet(name: str, columns: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError:
        raise CommandError("Parquet needs pyarrow: pip install 'fastdx[parquet]'") from None
    try:
        file = pq.ParquetFile(name)
        for column in columns:
            if column not in file.schema_arrow.names:
                count = len(file.schema_arrow.names)
                message = f"{name}: none of its {count} columns is called {column!r}"
                raise CommandError(message, ", ".join(map(repr, file.schema_arrow.names)))
        row = 1
        for batch in file.iter_batches(columns=columns):
            for record in batch.to_pylist():
                yield f"{name}, row {row}", record
                row += 1
    except pa.ArrowException as e:
        # Its message may hold content.
        raise CommandError(f"{name}: damaged, or no Parquet file", str(e)) from None
