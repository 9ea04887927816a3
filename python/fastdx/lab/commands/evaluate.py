"""``fastdx evaluate`` runs attacks and tasks on the user's own texts and writes a page."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fastdx.cli import options, policies
from fastdx.cli.formats import FORMATS, Choice, Opener, format_of
from fastdx.cli.formats.base import column_of
from fastdx.cli.formats.opening import Lines
from fastdx.cli.formats.parquet import opened
from fastdx.cli.messages import CommandError, step
from fastdx.mechanisms import Mechanism


def add(commands: options.Commands) -> None:
    """Add the command."""
    p = commands.add_parser(
        "evaluate",
        description="Run attacks and tasks on your own texts. Attackers name words (alone, in "
        "sentences and repeated), the author of a text, and the authors or members of a model's "
        "training texts; a task measures how well a model learns. The page and the JSON hold none "
        "of the texts. Needs scikit-learn: pip install 'fastdx[evaluate]'.",
        examples="""
  fastdx evaluate reviews.jsonl --label-column stars -o page.html
  fastdx evaluate mails.csv --text-column body --author-column from --epsilon 2 --cover 40 \\
      --balance 0.1 -o page.html
  fastdx evaluate mails.csv --text-column body --policy policies.toml -o page.html
""",
        short="text_column label_column author_column output policy epsilon",
    )
    p.add_argument("files", nargs="+", metavar="FILE", help="JSONL, JSON, CSV, TSV or Parquet")
    options.add_mechanism(p)
    group = p.add_argument_group("input")
    group.add_argument("--format", choices=tuple(f for f in FORMATS if f != "text"),
                       help="by default recognised by the files' names, or else by their "
                       "content")  # fmt: skip
    group.add_argument("--text-column", default="text", metavar="NAME",
                       help="the column or field of the text (default %(default)s)")  # fmt: skip
    group.add_argument("--label-column", metavar="NAME", help="the column of a label to learn, for "
                       "the task and for membership inference")  # fmt: skip
    group.add_argument("--author-column", metavar="NAME",
                       help="the column of the author, for attacks on authorship")  # fmt: skip
    group = p.add_argument_group("measuring")
    group.add_argument("--sample", type=int, default=5000, metavar="N",
                       help="the number of texts used, drawn at random (0: all; default "
                       "%(default)s)")  # fmt: skip
    group.add_argument("--trials", type=int, default=5, help="the number of splits of the texts, "
                       "each with fresh draws (default %(default)s)")  # fmt: skip
    group.add_argument("--attacked", type=int, default=100, metavar="N", help="per trial, the "
                       "number of texts whose sentences are attacked, and of words that are "
                       "repeated (default %(default)s)")  # fmt: skip
    group.add_argument("--no-network", action="store_true", help="leave out the attack by a neural "
                       "network, which takes most of the time")  # fmt: skip
    group = p.add_argument_group("output")
    group.add_argument("-o", "--output", required=True, metavar="FILE", help="the HTML page; a "
                       "JSON file is written beside it")  # fmt: skip
    group.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options.add(group, "quiet", "show-text")
    p.set_defaults(run=_evaluate)


def _read(args: argparse.Namespace) -> tuple[list[dict[str, str]], int]:
    """Return the records with a text, a label and an author as asked, and the number of others."""
    names = (args.text_column, args.label_column, args.author_column)
    columns = [name for name in names if name is not None]
    if len(set(columns)) < len(columns):
        raise CommandError("--text-column, --label-column and --author-column must differ")
    opener = Opener()
    rows, left_out = [], 0
    for name in args.files:
        # The name or the content of each file decides, if no format is given.
        kind = format_of(name, opener, args.format).name
        if kind == "text":
            raise CommandError(f"{name}: plain text has no columns (see --format)")
        for at, record in _records(name, kind, opener, columns):
            row = _row(at, record, columns)
            if len(row) == len(columns):
                rows.append(row)
            else:
                left_out += 1
    return rows, left_out


def _row(at: str, record: Any, columns: list[str]) -> dict[str, str]:
    """Return the fields that are not empty; the first column is that of the text."""
    if not isinstance(record, dict):
        raise CommandError(f"{at}: not a JSON object")
    row = {}
    for column in columns:
        if column not in record:
            message = f"{at}: none of its {len(record)} fields is called {column!r}"
            raise CommandError(message, ", ".join(map(repr, record)))
        value, text = record[column], column == columns[0]
        if not isinstance(value, str if text else (str, int, float)) and value is not None:
            what = f"{type(value).__name__}, {'not text' if text else 'no label'}"
            raise CommandError(f"{at}: field {column!r} holds a {what}")
        if value is not None and value != "":
            row[column] = str(value)
    return row


def _records(name: str, kind: str, opener: Opener, columns: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield every record with its place in the file."""
    if kind == "parquet":
        with opened(name) as file:
            for column in columns:
                column_of(name, file.schema_arrow.names, column)
            for row, record in enumerate(file.read(columns=columns).to_pylist(), 1):
                yield f"{name}, row {row}", record
        return
    if kind in ("csv", "tsv"):
        for batch in FORMATS[kind](Choice(tuple(columns)), name).read(opener):
            texts = batch.texts()
            for first in range(0, len(texts), len(columns)):
                fields = texts[first : first + len(columns)]
                yield batch.place(first), dict(zip(columns, fields, strict=True))
        return
    with opener.open(name) as source:
        text = Lines(source.read(), 1, 0).text(name)
    # A .json file may also hold one object per line.
    if kind == "jsonl" or text.lstrip().startswith("{"):
        for number, written in enumerate(text.split("\n"), 1):
            if written.strip():
                at = f"{name}, line {number}"
                yield at, _parsed(at, written)
        return
    every = _parsed(name, text)
    if not isinstance(every, list):
        raise CommandError(f"{name}: not an array of JSON objects")
    for number, record in enumerate(every, 1):
        yield f"{name}, record {number}", record


def _parsed(at: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        where = f" at character {e.pos}" if isinstance(e, json.JSONDecodeError) else ""
        raise CommandError(f"{at}: not JSON{where}") from None


def _judged(args: argparse.Namespace) -> Mechanism | dict[str, Mechanism]:
    if args.policy and Path(args.policy).exists() and policies.has_names(args.policy):
        options.refuse_beside_policy(args)
        return policies.mechanisms(args.policy)
    return options.MechanismOptions.of(args).make()


def _evaluate(args: argparse.Namespace) -> None:
    if args.sample < 0:
        raise CommandError(f"--sample must be at least 0, got {args.sample}")
    if args.output.lower().endswith(".json"):
        raise CommandError("--output must name the page: the JSON file is written beside it")
    rows, left_out = _read(args)
    if 0 < args.sample < len(rows):  # a random sample, in its order
        order = np.random.default_rng(0).permutation(len(rows))
        rows = [rows[i] for i in sorted(order[: args.sample].tolist())]
    try:
        from fastdx.lab.evaluation import evaluate
    except ImportError:
        message = "evaluate needs scikit-learn: pip install 'fastdx[evaluate]'"
        raise CommandError(message) from None
    judged = _judged(args)

    def column(name: str | None) -> list[str] | None:
        return None if name is None else [row[name] for row in rows]

    with step(quiet=args.quiet) as progress:
        found = evaluate(
            judged, [row[args.text_column] for row in rows], labels=column(args.label_column),
            authors=column(args.author_column), trials=args.trials, attacked=args.attacked,
            network=not args.no_network, progress=progress,
            command=shlex.join(["fastdx", *sys.argv[1:]]),
        )  # fmt: skip
    if left_out:
        found.notes.append(f"{left_out:,} records without text, label or author were left out.")
    if not isinstance(judged, Mechanism):
        found.notes.append("Whole texts were privatised, also under policies that ask for spans.")
    found.write(args.output)
    print(found.to_markdown() if args.markdown else found)
