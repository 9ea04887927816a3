"""CSV and tab-separated files."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

from fastdx.cli.formats.base import BATCH_CHARACTERS, Batch, Choice, Format, column_of
from fastdx.cli.formats.opening import HINT, Opener, cut
from fastdx.cli.messages import CommandError


class _Rows(Batch):
    """Rows of a file, with the texts in them."""

    def __init__(self, table: _Table) -> None:
        self.table = table
        self.rows: list[list[str]] = []
        self.lines: list[int] = []
        self.texts = []
        self.accounts = None if table.account is None else []

    def place(self, text: int) -> str:
        width = len(self.table.where)
        full = [line for row, line in zip(self.rows, self.lines, strict=True) if row]
        line, column = full[text // width], self.table.columns[text % width]
        return f"{self.table.name}, line {line}, column {column!r}"


class _Table:
    """A file with its name, its line ends and the places of its text columns."""

    def __init__(self, name: str, end: str, first: list[str], choice: Choice) -> None:
        self.name = name
        self.end = end
        self.header = first if choice.header else None
        self.columns = choice.columns
        self.where = [self._column(first, c) for c in choice.columns]
        account = choice.account
        self.account = None if account is None else self._column(first, account)

    def _column(self, names: Sequence[str], column: str) -> int:
        if self.header is not None:
            return column_of(self.name, names, column)
        if not column.isascii() or not column.isdigit() or not 1 <= int(column) <= len(names):
            raise CommandError(
                f"{self.name}: with --no-header columns are numbers from 1 to {len(names)}, "
                f"not {column!r}"
            )
        return int(column) - 1


class _TooLong(Exception):
    """A row is longer than allowed."""


class Delimited(Format):
    """Fields separated by commas or another sign, by default with a header."""

    name = "csv"
    suffixes = (".csv",)
    delimiter = ","

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice)
        delimiter = choice.delimiter or self.delimiter
        self._form: dict[str, Any] = {"delimiter": delimiter, "strict": True}
        if delimiter == "\t":
            # A tab-separated file has no quotes, so no field can hold a tab.
            self._form |= {"quoting": csv.QUOTE_NONE, "quotechar": None}
        self._unfinished = 0
        csv.field_size_limit(choice.longest)

    def read(self, name: str, opener: Opener) -> Generator[_Rows, None, None]:
        """Read the rows of a file."""
        with opener.open(name) as source:
            self._unfinished = 0
            lines = self._lines(source, name)
            start = next(lines, None)
            if start is None:
                if self.choice.header:
                    raise CommandError(f"{name}: no header: the file is empty")
                return
            end = "\r\n" if start.endswith("\r\n") else "\n"
            reader = csv.reader(chain([start], lines), **self._form)
            rows = self._rows(name, reader)
            top = next(rows)
            table = _Table(name, end, top[1], self.choice)
            names = table.header or [str(i + 1) for i in range(len(top[1]))]
            left = (c for c in names if c not in self.choice.columns)
            self.left.names.update(dict.fromkeys(left))
            opening = _Rows(table)
            if table.header is not None:
                opening.rows.append(table.header)
                opening.lines.append(1)
            yield opening
            yield from self._batches(table, chain([] if table.header else [top], rows), len(top[1]))

    def _lines(self, source: BinaryIO, name: str) -> Iterator[str]:
        """Yield lines with their ends; only a line feed ends a line.

        A quoted row may span lines, but it must not be longer than the bound.
        """
        longest = self.choice.longest
        for block in cut(source, name, 1 << 18, longest=longest):
            # No row has ended in the blocks counted here.
            if self._unfinished > longest:
                raise _TooLong
            text = block.text(name)
            self._unfinished += len(text)
            yield from io.StringIO(text.removeprefix("\ufeff") if block.line == 1 else text,
                                   newline="\n")  # fmt: skip

    def _rows(self, name: str, reader: Any) -> Iterator[tuple[int, list[str]]]:
        line = 0
        try:
            for row in reader:
                line, self._unfinished = reader.line_num, 0
                yield line, row
        except (csv.Error, _TooLong) as e:
            if isinstance(e, _TooLong) or "field limit" in str(e):
                message = f"a row of more than {self.choice.longest} characters{HINT}"
                raise CommandError(f"{name}, line {line + 1}: {message}") from None
            raise CommandError(f"{name}, line {reader.line_num}: {e}") from None

    def _batches(
        self, table: _Table, rows: Iterator[tuple[int, list[str]]], width: int
    ) -> Iterator[_Rows]:
        batch, size = _Rows(table), 0
        what = "header" if table.header is not None else "first line"
        for line, row in rows:
            batch.rows.append(row)
            batch.lines.append(line)
            size += 64 + len(row)
            if row:
                if len(row) != width:
                    at = f"{table.name}, line {line}"
                    raise CommandError(f"{at}: {len(row)} fields, the {what} has {width}")
                texts = [row[at] for at in table.where]
                batch.texts += texts
                size += sum(map(len, row))
                if batch.accounts is not None and table.account is not None:
                    batch.accounts += [row[table.account]] * len(texts)
            if size >= BATCH_CHARACTERS:
                yield batch
                batch, size = _Rows(table), 0
        yield batch

    def write(self, batch: _Rows, out: BinaryIO) -> None:
        """Write rows, with the new texts in their places."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator=batch.table.end, **self._form)
        if batch.texts:
            new = iter(batch.new)
            for row in batch.rows:
                if row:
                    for at in batch.table.where:
                        row[at] = next(new)
        try:
            writer.writerows(batch.rows)
        except csv.Error as e:
            # A field contains the delimiter, and the format has no quotes.
            raise CommandError(f"{batch.table.name}: {e}") from None
        out.write(text.getvalue().encode())


class TabSeparated(Delimited):
    """Fields separated by tabs, without quotes."""

    name = "tsv"
    suffixes = (".tsv",)
    delimiter = "\t"
