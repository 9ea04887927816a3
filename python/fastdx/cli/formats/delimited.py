"""CSV and tab-separated files with a header."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from fastdx.cli.formats.batches import Privatise, Released, Row, batches, column_of
from fastdx.cli.formats.opening import LONGEST, lines_of, open_input
from fastdx.cli.messages import CommandError, Progress


def delimited(
    names: Sequence[str],
    columns: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
    *,
    delimiter: str,
) -> Released:
    """Privatise columns of CSV files with a header; return what was left as it was."""
    csv.field_size_limit(LONGEST)
    text_out = io.TextIOWrapper(out, "utf-8", newline="", write_through=True)
    header: list[str] | None = None
    try:
        for name in names:
            with open_input(name, progress) as source:
                lines = lines_of(source, name)
                first = next(lines, None)
                if first is None:
                    raise CommandError(f"{name}: no header: the file is empty")
                end = "\r\n" if first.endswith("\r\n") else "\n"
                # A tab-separated file has no quotes: no field can hold a tab.
                form: dict[str, Any] = {"delimiter": delimiter, "strict": True}
                if delimiter == "\t":
                    form |= {"quoting": csv.QUOTE_NONE, "quotechar": None}
                reader = csv.reader(_chain(first, lines), **form)
                writer = csv.writer(text_out, lineterminator=end, **form)
                own = next(_csv_lines(name, reader))
                where = [column_of(name, own, c) for c in columns]
                if header is None:
                    header = own
                    writer.writerow(own)
                elif header != own:
                    raise CommandError(f"{name}: its header differs from that of {names[0]}")
                rows = _csv_rows(name, reader, len(own), where)
                for row in batches(name, rows, columns, private):
                    for at, text in zip(where, row.texts, strict=False):
                        row.record[at] = text
                    writer.writerow(row.record)
    finally:
        with contextlib.suppress(ValueError):
            text_out.detach()
    return Released([c for c in header or [] if c not in columns])


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _csv_rows(name: str, reader: Any, width: int, where: Sequence[int]) -> Iterator[Row]:
    for row in _csv_lines(name, reader):
        if row and len(row) != width:
            at = f"{name}, line {reader.line_num}"
            raise CommandError(f"{at}: {len(row)} fields, the header has {width}")
        yield Row(reader.line_num, row, [row[at] for at in where] if row else [])


def _csv_lines(name: str, reader: Any) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as e:
        raise CommandError(f"{name}, line {reader.line_num}: {e}") from None
