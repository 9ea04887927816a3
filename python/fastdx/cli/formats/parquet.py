"""Parquet files."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO

from fastdx._core import Replacements, field_steps
from fastdx._shared.card import with_card
from fastdx.cli.formats.base import Batch, Choice, Format, column_of
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


class _Rows(Batch):
    """Rows of a file."""

    def __init__(self, form: Parquet, batch: Any, row: int) -> None:
        self._form, self._batch, self._row = form, batch, row
        self.arrays = list(batch.columns)
        if form.account is not None:
            self.payers = self._paid_by(form.account)

    @cached_property
    def _found(self) -> list[tuple[_Column, int, str]]:
        """Each text with its column and row, in the order in which they are drawn."""
        return [
            (column, row, text)
            for column in self._form.columns
            for row, value in enumerate(self._batch.column(column.at).to_pylist())
            for text in _texts(value, column.path)
        ]

    @cached_property
    def texts(self) -> Sequence[str]:  # type: ignore[override]  # mypy takes it for read-only
        return [text for _, _, text in self._found]

    def _paid_by(self, account: _Column) -> list[str]:
        """Return the account of each text."""
        names = self._batch.column(account.at).to_pylist()
        for row, name in enumerate(names, self._row):
            if not isinstance(name, (str, int)) or isinstance(name, bool) or name == "":
                raise CommandError(f"{self._form.file}, row {row}: no account: column "
                                   f"{account.asked!r} is missing or holds no name")  # fmt: skip
        return [str(names[row]) for _, row, _ in self._found]

    def place(self, text: int, start: int | None = None) -> str:
        column, row, _ = self._found[text]
        return f"{self._form.file}, row {self._row + row}, column {column.asked!r}"

    def draw(self, mechanism: Mechanism, kept: Replacements | None = None) -> Mapping[str, int]:
        from fastdx._shared.columns import privatize_arrow  # with numpy

        counts: Counter[str] = Counter()
        for column in self._form.columns:
            try:
                with warnings.catch_warnings():
                    # The closing lines report the same counts.
                    warnings.simplefilter("ignore", FastdxWarning)
                    array, found = privatize_arrow(mechanism, self.arrays[column.at], column.path)
            except UnknownWordError as e:
                columns = [of for of, _, _ in self._found]
                e.text = columns.index(column) + (e.text or 0)
                raise
            except InputTypeError as e:
                where = f"{self._form.file}, from row {self._row}: column {column.asked!r}"
                raise CommandError(f"{where}: {e}") from None
            self.arrays[column.at] = array
            counts.update(found)
        return counts


class Parquet(Format):
    """Columns of text, lists of text, dictionaries, and fields of structs.

    Metadata is dropped unless Arrow or pandas need it to read the columns, because it could hold
    private content.
    """

    name = "parquet"
    suffixes = (".parquet", ".pq")
    packs = False
    file = ""
    """The name of the file."""
    columns: Sequence[_Column] = ()
    """The columns of text."""
    account: _Column | None = None

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice)
        _arrow()
        self._schema: Any = None
        self._writer: Any = None

    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read the row groups of a file."""
        # With numpy, which other formats do not need.
        from fastdx._shared.columns import check_field, own_schema

        if name == "-":
            raise CommandError("Parquet cannot be read from standard input: name a file")
        self.file = name
        with opened(name) as file:
            self._schema, dropped = own_schema(file.schema_arrow)
            self.dropped |= dict.fromkeys(dropped)
            self.columns = [_Column(name, self._schema, c) for c in self.choice.columns]
            for column in self.columns:
                try:
                    check_field(self._schema.field(column.at), column.path)
                except InputTypeError as e:
                    raise CommandError(f"{name}: column {column.asked!r}: {e}") from None
            if self.choice.account is not None:
                self.account = _Column(name, self._schema, self.choice.account)
            asked = {column.replace("[]", "") for column in self.choice.columns}
            leaves = [leaf for field in self._schema for leaf in _leaves(field.type, field.name)]
            self.left |= {leaf: None for leaf in leaves if leaf.replace("[]", "") not in asked}
            row = 1
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                yield _Rows(self, batch, row)
                row += batch.num_rows
            if row == 1:
                empty = _arrow().RecordBatch.from_pylist([], schema=file.schema_arrow)
                yield _Rows(self, empty, 1)

    def write(self, batch: _Rows, out: BinaryIO) -> None:
        """Write rows."""
        from fastdx._shared.columns import of_type, own_schema

        pa = _arrow()
        if self._writer is None:
            schema = self._schema
            # New words can make the indices of a dictionary wider.
            for column in self.columns:
                field = schema.field(column.at).with_type(batch.arrays[column.at].type)
                schema = schema.set(column.at, own_schema(pa.schema([field]))[0].field(0))
            self._writer = pa.parquet.ParquetWriter(out, with_card(schema, self.card))
        schema = self._writer.schema
        arrays = [of_type(a, f.type) for a, f in zip(batch.arrays, schema, strict=True)]
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
