"""CSV and tab-separated files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

from fastdx.cli.formats.base import BATCH_CHARACTERS, Batch, Choice, Format, column_of
from fastdx.cli.formats.opening import HINT, Lines, Opener
from fastdx.cli.messages import CommandError


class Delimited(Format):
    """Fields separated by commas or another sign, by default with a header."""

    name = "csv"
    suffixes = (".csv",)
    delimiter = ","
    places: Sequence[int] = ()
    """The places of the columns of text."""
    payer: Sequence[int] = ()
    """The place of the column of accounts, if there is one."""

    def __init__(self, choice: Choice, file: str) -> None:
        super().__init__(choice, file)
        delimiter = choice.delimiter or self.delimiter
        self._form: dict[str, Any] = {"delimiter": delimiter, "strict": True}
        if delimiter == "\t":
            # A tab-separated file has no quotes, so no field can hold a tab.
            self._form |= {"quoting": csv.QUOTE_NONE, "quotechar": None}
        self._line, self._unfinished = 1, 0  # of the row that is read: its first line, its bytes
        self._header: list[str] | None = None

    def read(self, opener: Opener) -> Iterator[Batch]:
        """Read the rows of the file."""
        with opener.open(self.file) as source:
            rows = self._rows(source)
            line, first = next(rows, (0, None))
            if first is None:
                if self.choice.header:
                    raise CommandError(f"{self.file}: no header: the file is empty")
                return
            columns, names = self.choice.columns, first
            if self.choice.header:
                self._header = first
            else:
                rows = chain([(line, first)], rows)
                names = [str(i + 1) for i in range(len(first))]
            self.places = [self._column(names, column) for column in columns]
            if self.choice.account is not None:
                self.payer = [self._column(names, self.choice.account)]
            self.left |= dict.fromkeys(name for name in names if name not in columns)
            batch: list[tuple[int, list[str]]] = []
            size = 0
            for line, row in rows:
                if row and len(row) != len(first):
                    what = "header" if self.choice.header else "first line"
                    raise CommandError(f"{self.file}, line {line}: {len(row)} fields, the {what} "
                                       f"has {len(first)}")  # fmt: skip
                batch.append((line, row))
                size += 64 + len(row) + sum(map(len, row))
                if size >= BATCH_CHARACTERS:
                    yield self._batch(batch)
                    batch, size = [], 0
            yield self._batch(batch)

    def _column(self, names: Sequence[str], column: str) -> int:
        if not self.choice.header and column not in names:
            raise CommandError(
                f"{self.file}: with --no-header columns are numbers from 1 to {len(names)}, "
                f"not {column!r}"
            )
        return column_of(self.file, names, column)

    def _batch(self, rows: Sequence[tuple[int, list[str]]]) -> Batch:
        full = [(line, row) for line, row in rows if row]
        texts = [row[at] for _, row in full for at in self.places]
        payers = [row[at] for _, row in full for at in self.payer for _ in self.places]

        def place(text: int, _: int = 0) -> str:
            row, column = divmod(text, len(self.places))
            return f"{self.file}, line {full[row][0]}, column {self.choice.columns[column]!r}"

        return Batch(lambda: texts, place, payers, [row for _, row in rows])

    def _rows(self, source: BinaryIO) -> Iterator[tuple[int, list[str]]]:
        """Yield each row with the line at which it ends."""
        csv.field_size_limit(self.choice.longest)
        reader = csv.reader(self._lines(source), **self._form)
        try:
            for row in reader:
                self._line, self._unfinished = reader.line_num + 1, 0
                yield reader.line_num, row
        except csv.Error as e:
            raise CommandError(f"{self.file}, line {reader.line_num}: {e}") from None

    def _lines(self, source: BinaryIO) -> Iterator[str]:
        """Yield lines with their ends; only a line feed ends a line.

        A quoted row may span lines, but it must not be longer than the bound.
        """
        number, offset = 1, 0
        while line := source.readline(self.choice.longest + 1):
            self._unfinished += len(line)
            if self._unfinished > self.choice.longest:
                row = f"a row of more than {self.choice.longest} characters"
                raise CommandError(f"{self.file}, line {self._line}: {row}{HINT}")
            text = Lines(line, number, offset).text(self.file)
            if number == 1:
                text = text.removeprefix("\ufeff")
                self._form["lineterminator"] = "\r\n" if text.endswith("\r\n") else "\n"
            yield text
            number, offset = number + 1, offset + len(line)

    def write(self, batch: Batch, new: Iterable[str], out: BinaryIO) -> None:
        """Write rows, with the new texts in their places."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, **self._form)
        drawn = iter(new)
        for row in filter(None, batch.records):
            for at in self.places:
                row[at] = next(drawn)
        try:
            if self._header is not None:
                writer.writerow(self._header)
                self._header = None
            writer.writerows(batch.records)
        except csv.Error as e:
            # A field contains the delimiter, and the format has no quotes.
            raise CommandError(f"{self.file}: {e}") from None
        out.write(text.getvalue().encode())


class TabSeparated(Delimited):
    """Fields separated by tabs, without quotes."""

    name = "tsv"
    suffixes = (".tsv",)
    delimiter = "\t"
