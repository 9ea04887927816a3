"""Reads files of records with labels and authors, for ``fastdx evaluate``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from fastdx.cli.formats import FORMATS, Choice, Opener, format_of
from fastdx.cli.formats.base import column_of
from fastdx.cli.formats.opening import Lines
from fastdx.cli.formats.parquet import opened
from fastdx.cli.messages import CommandError


def read(args: argparse.Namespace) -> tuple[list[dict[str, str]], int]:
    """Return the records with a text, a label and an author as asked, and the number of others."""
    names = (args.text_column, args.label_column, args.author_column)
    columns = [name for name in names if name is not None]
    if len(set(columns)) < len(columns):
        raise CommandError("--text-column, --label-column and --author-column must differ")
    opener = Opener()
    rows, left_out = [], 0
    for name in args.files:
        # The name or the content of each file decides, if no format is given.
        kind = args.format or format_of(name, opener).name
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
        value = record.get(column)
        if column not in record:
            message = f"{at}: none of its {len(record)} fields is called {column!r}"
            raise CommandError(message, ", ".join(map(repr, record)))
        if value is None or value == "":
            continue
        kind = type(value).__name__
        if column == columns[0] and not isinstance(value, str):
            raise CommandError(f"{at}: field {column!r} holds a {kind}, not text")
        if not isinstance(value, (str, int, float, bool)):
            raise CommandError(f"{at}: field {column!r} holds a {kind}, no label")
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
        for batch in FORMATS[kind](Choice(tuple(columns))).read(name, opener):
            texts = batch.texts
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
