"""Parquet files."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fastdx._core import field_steps
from fastdx._shared.card import with_card
from fastdx.cli.formats.base import (
    Batch,
    Choice,
    Draw,
    Format,
    column_of,
    leaves,
    listed,
    unknown,
)
from fastdx.cli.formats.opening import Opener
from fastdx.cli.messages import CommandError
from fastdx.exceptions import InputTypeError, UnknownWordError

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
        parts = [asked] if asked in schema.names else field_steps(asked)
        self.asked = asked
        self.at = column_of(name, schema.names, parts[0])
        # The core enters lists by itself; the brackets only require the file to have a list.
        self.path = [part for part in parts[1:] if part]
        kind, shown = schema.field(self.at).type, parts[0]
        for part in parts[1:]:
            kind = self._within(name, kind, part, shown)
            shown += f".{part}" if part else "[]"

    @staticmethod
    def _within(name: str, kind: Any, part: str, shown: str) -> Any:
        types = _arrow().types
        if not part:
            if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
                return kind.value_type
            raise CommandError(f"{name}: {shown!r} holds {_short(kind)}, not lists")
        if not types.is_struct(kind):
            more = "; its items: with []" if types.is_list(kind) else ""
            raise CommandError(f"{name}: {shown!r} holds {_short(kind)}, not structs{more}")
        if kind.get_field_index(part) < 0:
            fields = [kind.field(at).name for at in range(kind.num_fields)]
            raise CommandError(
                f"{name}: {shown!r} has no field {part!r}; its fields are {listed(fields)}"
            )
        return kind.field(part).type


def _short(kind: Any) -> str:
    """Return the name of a type without the names of its fields."""
    return str(kind).split("<", 1)[0]


class _Rows(Batch):
    """Rows of a file."""

    def __init__(self, source: _Source, batch: Any, row: int) -> None:
        self.source = source
        self.batch = batch
        self.row = row
        self.arrays = list(batch.columns)
        self.texts = []

    def place(self, text: int) -> str:
        return f"{self.source.name}, from row {self.row}"

    def _place_in(self, column: _Column, text: int) -> str:
        """Return the place of the n-th text of a column, with its row."""
        for row, value in enumerate(self.batch.column(column.at)):
            text -= sum(1 for _ in leaves(value.as_py(), column.path))
            if text < 0:
                return f"{self.source.name}, row {self.row + row}, column {column.asked!r}"
        return self.place(text)

    def draw(self, draw: Draw) -> None:
        for column in self.source.columns:
            try:
                self.arrays[column.at] = draw.column(
                    self.arrays[column.at], column.path, self._payers(column)
                )
            except UnknownWordError as e:
                raise unknown(e, self._place_in(column, e.text or 0)) from None
            except InputTypeError as e:
                message = str(e).removeprefix("text must be a column of text, not ")
                raise CommandError(
                    f"{self.source.name}: column {column.asked!r} holds {message}"
                ) from None

    def _payers(self, column: _Column) -> list[str] | None:
        """Return the account of each text of a column."""
        if self.source.account is None:
            return None
        found: list[str] = []
        payers = self.batch.column(self.source.account.at)
        for row, (payer, value) in enumerate(
            zip(payers, self.batch.column(column.at), strict=True)
        ):
            who = payer.as_py()
            if not isinstance(who, (str, int)) or isinstance(who, bool) or who == "":
                raise CommandError(
                    f"{self.source.name}, row {self.row + row}: no account: column "
                    f"{self.source.account.asked!r} is missing or holds no name"
                )
            found += [str(who)] * sum(1 for _ in leaves(value.as_py(), column.path))
        return found


class _Source:
    """An open file with its columns."""

    def __init__(self, name: str, schema: Any, choice: Choice) -> None:
        self.name = name
        self.schema = schema
        self.columns = [_Column(name, schema, c) for c in choice.columns]
        self.account = None if choice.account is None else _Column(name, schema, choice.account)


class Parquet(Format):
    """Columns of text, lists of text, dictionaries, and fields of structs.

    Metadata is dropped unless Arrow or pandas need it to read the columns, because it could hold
    private content.
    """

    name = "parquet"
    suffixes = (".parquet", ".pq")
    packs = False

    def __init__(self, choice: Choice) -> None:
        """Check that pyarrow is installed."""
        super().__init__(choice)
        _arrow()
        self._writer: Any = None

    def read(self, name: str, opener: Opener) -> Generator[Batch, None, None]:
        """Read the row groups of a file."""
        from fastdx._shared.columns import own_schema  # with numpy, which other formats do not need

        pa = _arrow()
        if name == "-":
            raise CommandError("Parquet cannot be read from standard input: name a file")
        with opened(name) as file:
            schema, keys = own_schema(file.schema_arrow)
            self.left.dropped.update(dict.fromkeys(keys))
            source = _Source(name, schema, self.choice)
            self.left.names.update(dict.fromkeys(_others(schema, source.columns)))
            size, rows = Path(name).stat().st_size, max(file.metadata.num_rows, 1)
            row = 1
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                self._check(source, batch, row)
                yield _Rows(source, batch, row)
                row += batch.num_rows
                opener.progress(size * batch.num_rows // rows)
            if row == 1:
                yield _Rows(source, pa.RecordBatch.from_pylist([], schema=file.schema_arrow), 1)

    def _check(self, source: _Source, batch: Any, row: int) -> None:
        """Refuse text that is not UTF-8; Arrow itself reads any bytes as text."""
        for column in source.columns:
            try:
                batch.column(column.at).validate(full=True)
            except _arrow().ArrowException:
                where = f"{source.name}, from row {row}: column {column.asked!r}"
                raise CommandError(f"{where} is not UTF-8") from None

    def write(self, batch: _Rows, out: BinaryIO) -> None:
        """Write rows."""
        from fastdx._shared.columns import own_schema

        pa = _arrow()
        schema = batch.source.schema
        if self._writer is None:
            # New words can make the indices of a dictionary wider.
            for column in batch.source.columns:
                field = schema.field(column.at).with_type(batch.arrays[column.at].type)
                schema = schema.set(column.at, own_schema(pa.schema([field]))[0].field(0))
            self._writer = pa.parquet.ParquetWriter(out, with_card(schema, self.card))
        arrays = [
            a if a.type.equals(f.type, check_metadata=True) else a.cast(f.type)
            for a, f in zip(batch.arrays, self._writer.schema, strict=True)
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._writer.schema))

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Prevent the writer from ending the file when it is garbage-collected."""
        if self._writer is not None:
            self._writer.is_open = False


def _others(schema: Any, columns: Sequence[_Column]) -> Iterator[str]:
    """Yield the columns and nested fields that are released unchanged."""
    types = _arrow().types

    def fields(kind: Any, name: str, paths: list[list[str]]) -> Iterator[str]:
        if not paths:
            yield name
        elif [] not in paths and types.is_struct(kind):
            for field in kind:
                within = [path[1:] for path in paths if path[0] == field.name]
                yield from fields(field.type, f"{name}.{field.name}", within)
        elif hasattr(kind, "value_type") and not types.is_dictionary(kind):
            yield from fields(kind.value_type, f"{name}[]", paths)

    for at, field in enumerate(schema):
        yield from fields(field.type, field.name, [c.path for c in columns if c.at == at])
