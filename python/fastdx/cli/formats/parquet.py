"""Parquet files."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, BinaryIO

from fastdx._core import Replacements, field_steps
from fastdx._shared.card import with_card
from fastdx.cli.formats.base import Batch, Format, column_of
from fastdx.cli.formats.opening import Opener
from fastdx.cli.messages import CommandError
from fastdx.exceptions import FastdxWarning, InputTypeError, UnknownWordError
from fastdx.mechanisms import Mechanism

BATCH_ROWS = 4096
"""Rows per batch."""


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CommandError("Parquet needs pyarrow: pip install 'fastdx[parquet]'") from None
    return pyarrow


@contextmanager
def opened(name: str) -> Iterator[Any]:
    """Open a file with pyarrow; the message of an error that pyarrow raises may hold content."""
    pa = _arrow()
    try:
        with pa.parquet.ParquetFile(name) as file:
            yield file
    except pa.ArrowException as e:
        raise CommandError(f"{name}: damaged, or no Parquet file", str(e)) from None


class _Column:
    """A column of a file, with the path of the text in it."""

    def __init__(self, name: str, schema: Any, asked: str) -> None:
        # A name with points names a nested field, unless a column has this name.
        first, *path = [asked] if asked in schema.names else field_steps(asked)
        self.asked = asked
        self.at = column_of(name, schema.names, first)
        # Lists are entered without being asked for, so the brackets say nothing.
        self.path = [part for part in path if part]


def _texts(value: Any, path: Sequence[str]) -> Iterator[str]:
    """Yield the texts in a Python value that comes from Arrow, in their order."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, path)
    elif isinstance(value, dict) and path:
        yield from _texts(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield value


class Parquet(Format):
    """Columns of text, lists of text, dictionaries, and fields of structs.

    Metadata is dropped unless Arrow or pandas need it to read the columns, because it could hold
    private content.
    """

    name = "parquet"
    suffixes = (".parquet", ".pq")
    packs = False
    columns: Sequence[_Column] = ()
    """The columns of text."""
    account: _Column | None = None
    _schema: Any = None
    _writer: Any = None

    def read(self, opener: Opener) -> Iterator[Batch]:
        """Read the row groups of the file."""
        # With numpy, which other formats do not need.
        from fastdx._shared.columns import check_field, own_schema

        if self.file == "-":
            raise CommandError("Parquet cannot be read from standard input: name a file")
        with opened(self.file) as file:
            self._schema, dropped = own_schema(file.schema_arrow)
            self.dropped |= dict.fromkeys(dropped)
            self.columns = [_Column(self.file, self._schema, c) for c in self.choice.columns]
            for column in self.columns:
                try:
                    check_field(self._schema.field(column.at), column.path)
                except InputTypeError as e:
                    raise CommandError(f"{self.file}: column {column.asked!r}: {e}") from None
            if self.choice.account is not None:
                self.account = _Column(self.file, self._schema, self.choice.account)
            asked = {column.replace("[]", "") for column in self.choice.columns}
            leaves = [leaf for field in self._schema for leaf in _leaves(field.type, field.name)]
            self.left |= {leaf: None for leaf in leaves if leaf.replace("[]", "") not in asked}
            row = 1
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                yield self._batch(batch, row)
                row += batch.num_rows
            if row == 1:
                empty = _arrow().RecordBatch.from_pylist([], schema=file.schema_arrow)
                yield self._batch(empty, row)

    def _batch(self, rows: Any, first: int) -> Batch:
        """Return rows of a file, of which the first has a number."""

        @cache
        def found() -> list[tuple[_Column, int, str]]:
            """Return each text with its column and row, in the order in which they are drawn."""
            return [
                (column, row, text)
                for column in self.columns
                for row, value in enumerate(rows.column(column.at).to_pylist())
                for text in _texts(value, column.path)
            ]

        def place(text: int, _: int = 0) -> str:
            column, row, _text = found()[text]
            return f"{self.file}, row {first + row}, column {column.asked!r}"

        payers = []
        if (account := self.account) is not None:
            names = rows.column(account.at).to_pylist()
            for row, name in enumerate(names, first):
                if not isinstance(name, (str, int)) or isinstance(name, bool) or name == "":
                    missing = f"column {account.asked!r} is missing or holds no name"
                    raise CommandError(f"{self.file}, row {row}: no account: {missing}")
            payers = [str(names[row]) for _, row, _ in found()]
        return Batch(lambda: [text for *_, text in found()], place, payers, (rows, first, found))

    def draw(
        self, batch: Batch, mechanism: Mechanism, kept: Replacements | None = None
    ) -> tuple[list[Any], Mapping[str, int]]:
        """Privatise the columns of text, and return all columns."""
        from fastdx._shared.columns import privatize_arrow  # with numpy

        rows, first, texts = batch.records
        arrays, counts = list(rows.columns), Counter[str]()
        for column in self.columns:
            try:
                with warnings.catch_warnings():
                    # The closing lines report the same counts.
                    warnings.simplefilter("ignore", FastdxWarning)
                    new, found = privatize_arrow(mechanism, arrays[column.at], column.path)
            except UnknownWordError as e:
                e.text = [of for of, *_ in texts()].index(column) + (e.text or 0)
                raise
            except InputTypeError as e:
                where = f"{self.file}, from row {first}: column {column.asked!r}"
                raise CommandError(f"{where}: {e}") from None
            arrays[column.at] = new
            counts.update(found)
        return arrays, counts

    def write(self, batch: Batch, new: list[Any], out: BinaryIO) -> None:
        """Write rows."""
        from fastdx._shared.columns import of_type, own_schema

        pa = _arrow()
        if self._writer is None:
            schema = self._schema
            # New words can make the indices of a dictionary wider.
            for column in self.columns:
                field = schema.field(column.at).with_type(new[column.at].type)
                schema = schema.set(column.at, own_schema(pa.schema([field]))[0].field(0))
            self._writer = pa.parquet.ParquetWriter(out, with_card(schema, self.card))
        schema = self._writer.schema
        arrays = [of_type(a, f.type) for a, f in zip(new, schema, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def close(self, *, complete: bool) -> None:
        """Write the end of the file, or prevent the writer from doing so when it is collected."""
        if self._writer is not None and complete:
            self._writer.close()
        elif self._writer is not None:
            self._writer.is_open = False


def _leaves(kind: Any, name: str) -> Iterator[str]:
    """Yield the paths of a column's innermost fields."""
    types = _arrow().types
    if types.is_struct(kind):
        for field in kind:
            yield from _leaves(field.type, f"{name}.{field.name}")
    elif hasattr(kind, "value_type") and not types.is_dictionary(kind):
        yield from _leaves(kind.value_type, f"{name}[]")
    else:
        yield name
