"""Privatises columns and frames of other libraries: pandas, polars, Arrow, DuckDB, nested lists.

A column keeps its kind, name, index and type, and its missing values (None, NaN, nulls). The module
imports no library that the caller has not imported, except pyarrow for columns that go by Arrow.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fastdx._core import MechanismCore, Replacements, privatize_strings
from fastdx._shared.card import card_of, with_card
from fastdx._shared.kinds import Kind, column, loaded
from fastdx.exceptions import InputTypeError, ParameterError, TooLargeError

ROWS = 1 << 16
"""The number of rows that are privatised at a time: with 8,192 words cost half as much again."""

JSON = "text must be text, not JSON, which would not be valid then: take its texts out first"


def privatize_column(mechanism: MechanismCore, given: Any) -> Any:
    """Privatise a column of any form; `Mechanism.privatize` calls it for all but lists of str.

    Of pandas, polars, Arrow and DuckDB (one column), of what has Arrow's C interface, or lists in
    lists of str. It keeps its form, and missing values stay missing.
    """
    if (duckdb := loaded("duckdb")) is not None and isinstance(given, duckdb.DuckDBPyRelation):
        if len(given.columns) != 1:
            raise InputTypeError(
                f"text is a relation of {len(given.columns)} columns: use privatize_frame"
            )
        return privatize_frame(mechanism, given, given.columns).column(0)
    return _drawn(mechanism, given)


def _drawn(mechanism: MechanismCore, given: Any, path: Sequence[str] = ()) -> Any:
    """Privatise a column; of structs, the field that the path names."""
    if (polars := loaded("polars")) is not None and isinstance(given, polars.Series):
        _check_enum(given.dtype, path, polars)
    arrow = partial(_arrow, mechanism, path=path)
    return column(given, Kind("text", "a str", (str,), mechanism.privatize, arrow))


def _check_enum(kind: Any, path: Sequence[str], polars: Any) -> None:
    if isinstance(kind, (polars.List, polars.Array)):
        _check_enum(kind.inner, path, polars)
    elif isinstance(kind, polars.Struct) and path:
        _check_enum(dict(kind).get(path[0]), path[1:], polars)
    elif isinstance(kind, polars.Enum):
        raise InputTypeError("text is an Enum, which holds no other words: cast it to String")


def _arrow(mechanism: MechanismCore, column: Any, path: Sequence[str] = ()) -> Any:
    import pyarrow

    new = privatize_arrow(mechanism, column, path)[0]
    schema = own_schema(pyarrow.schema([pyarrow.field("", new.type)]))[0]
    return of_type(new, schema.field(0).type)


def privatize_arrow(
    mechanism: MechanismCore, column: Any, path: Sequence[str] = (), field: Any = None
) -> tuple[Any, Counter[str]]:
    """Privatise an Array or ChunkedArray; of structs, the field that the path names.

    Returns a column of the same type, except that dictionaries get indices of at least 32 bits, and
    the counts of `privatize_counted`. Every row is drawn by itself, also of a dictionary. A column
    by itself has no metadata, which may say JSON: they are those of its field.
    """
    import pyarrow

    try:
        column.validate(full=True)
        damaged = False
    except pyarrow.ArrowException:
        damaged = True
    if damaged:
        # Outside of the clause, because the handled error may hold text.
        raise InputTypeError("text is an Arrow column that is damaged, or is not UTF-8")
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    pieces = [c.slice(at, ROWS) for c in chunks for at in range(0, len(c), ROWS)]
    pieces = pieces or [pyarrow.nulls(0, column.type)]
    field, drawn = field or pyarrow.field("", column.type), _Call(mechanism)
    try:
        new = [drawn.array(piece, field, path) for piece in pieces]
        made = pyarrow.chunked_array(new)
        return made if hasattr(column, "chunks") else pyarrow.concat_arrays(new), drawn.counts
    except (pyarrow.ArrowInvalid, pyarrow.ArrowCapacityError):
        message = "the text of an array with 32-bit offsets (use large_string) is over 2 GiB"
        raise TooLargeError(message) from None


def check_field(field: Any, path: Sequence[str]) -> None:
    """Refuse a field that is no text, or where the path names none."""
    import pyarrow

    _Call(None).array(pyarrow.nulls(0, field.type), field, path)


def _with_fields(kind: Any, of: Callable[[Any], Any]) -> Any:
    """Rebuild a type that contains fields."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([of(child) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(of(kind.key_field), of(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(of(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(of(kind.value_field))
    if pa.types.is_list(kind):
        return pa.list_(of(kind.value_field))
    return kind


class _Call:
    """One call on a column: what its pieces share."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism
        self.replacements = Replacements()
        self.texts = 0
        self.counts: Counter[str] = Counter()

    def array(self, array: Any, field: Any, path: Sequence[str]) -> Any:
        """Privatise an array of a field: of lists the items, of structs what the path names."""
        import pyarrow as pa

        kind, is_, text = field.type, pa.types, (pa.string(), pa.large_string(), pa.string_view())
        named = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
        if getattr(kind, "extension_name", named).lower().endswith("json"):
            # It is text, but its names and syntax are no words.
            raise InputTypeError(JSON)
        if is_.is_struct(kind):
            count, at = kind.num_fields, kind.get_all_field_indices(path[0]) if path else []
            if len(at) != 1:
                # Fields of the same name would otherwise be released unchanged.
                why = f", {len(at)} named {path[0]!r}" if path else ": name one"
                why = f"text must be a column of text, not a struct of {count} fields{why}"
                raise InputTypeError(why)
            arrays = [array.field(i) for i in range(count)]
            arrays[at[0]] = self.array(arrays[at[0]], kind.field(at[0]), path[1:])
            fields = [old.with_type(x.type) for old, x in zip(kind, arrays, strict=True)]
            return pa.StructArray.from_arrays(arrays, fields=fields, mask=array.is_null())
        if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
            # Of a slice, only the visible part.
            fixed = is_.is_fixed_size_list(kind)
            ends = (kind.list_size * (array.offset + np.arange(len(array) + 1)) if fixed
                    else array.offsets.to_numpy())  # fmt: skip
            shown = array.values.slice(ends[0], ends[-1] - ends[0])
            values = self.array(shown, kind.value_field, path)
            kind = _with_fields(kind, lambda field: field.with_type(values.type))
            offsets = [] if fixed else [pa.array(ends - ends[0], array.offsets.type)]
            return type(array).from_arrays(*offsets, values, type=kind, mask=array.is_null())
        if path:
            raise InputTypeError(f"text must be text, not {kind}, which has no field {path[0]!r}")
        if is_.is_dictionary(kind) and kind.value_type in text:
            index = kind.index_type if kind.index_type.bit_width >= 32 else pa.int32()
            rows = self.strings(array.dictionary_decode()).dictionary_encode()
            return rows.cast(pa.dictionary(index, kind.value_type, kind.ordered))
        if is_.is_null(kind):
            return array
        if kind not in text:
            raise InputTypeError(f"text must be a column of text, not {kind}")
        return self.strings(array).cast(kind)

    def strings(self, array: Any) -> Any:
        """Privatise an array of strings; of a null, what lies under it is not read."""
        import pyarrow as pa
        from pyarrow import compute

        present = array.is_valid()
        texts = array.cast(pa.large_string()).drop_null()
        if not (count := len(texts)):
            return pa.nulls(len(array), texts.type)
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + count + 1]
        held = np.frombuffer(data or b"", np.uint8)
        drawn = privatize_strings(self.mechanism, ends, held, self.replacements, self.texts)
        self.texts += count
        self.counts.update(drawn[2])
        buffers = [None, pa.py_buffer(drawn[0]), pa.py_buffer(drawn[1])]
        new = pa.Array.from_buffers(texts.type, count, buffers)
        if count == len(array):
            return new
        return compute.replace_with_mask(pa.nulls(len(array), texts.type), present, new)


def of_type(column: Any, kind: Any) -> Any:
    """Return the column with exactly this type, without other metadata of nested fields."""
    return column if column.type.equals(kind, check_metadata=True) else column.cast(kind)


def _is_json(kind: Any, path: list[str]) -> bool:
    """Return whether a type of DuckDB is JSON, which comes to Arrow as plain strings."""
    if kind.id in ("list", "array"):
        return _is_json(dict(kind.children)["child"], path)
    if kind.id == "struct" and path:
        inner = dict(kind.children).get(path[0])
        return inner is not None and _is_json(inner, path[1:])
    return str(kind) == "JSON"


def privatize_frame(
    mechanism: MechanismCore, frame: Any, columns: str | int | Iterable[str | int]
) -> Any:
    """Privatise columns of a frame; see `Mechanism.privatize_frame`."""
    names = column_names(columns)
    pandas, polars, arrow = loaded("pandas"), loaded("polars"), loaded("pyarrow")
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        if isinstance(frame.columns, pandas.MultiIndex):
            raise InputTypeError("frame has a MultiIndex of columns: flatten their names first")
        frame = frame.copy(deep=False)
        frame.attrs = {}
        for at, path in paths_of(names, list(frame.columns)):
            old = frame.iloc[:, at]
            if path and not isinstance(old.dtype, pandas.ArrowDtype):
                what = f"text must be a struct of Arrow, not {old.dtype}, to have fields"
                raise InputTypeError(what)
            frame.isetitem(at, _drawn(mechanism, old, path))
        return frame
    if polars is not None and isinstance(frame, polars.LazyFrame):
        raise InputTypeError("frame is lazy: a plan that runs again draws again; collect() it")
    if polars is not None and isinstance(frame, polars.DataFrame):
        for at, path in paths_of(names, frame.columns):
            frame = frame.with_columns(_drawn(mechanism, frame.to_series(at), path))
        return frame
    if (duckdb := loaded("duckdb")) is not None and isinstance(frame, duckdb.DuckDBPyRelation):
        if any(_is_json(frame.types[at], path) for at, path in paths_of(names, frame.columns)):
            raise InputTypeError(JSON)
        import pyarrow

        frame, arrow = pyarrow.table(frame), pyarrow
    if arrow is not None and isinstance(frame, (arrow.Table, arrow.RecordBatch)):
        table = drawn_columns(mechanism, frame, paths_of(names, frame.schema.names))
        schema = own_schema(table.schema)[0]
        arrays = [of_type(c, f.type) for c, f in zip(table.columns, schema, strict=True)]
        return type(table).from_arrays(arrays, schema=with_card(schema, card_of(mechanism)))
    raise InputTypeError(
        "frame must be a pandas or polars DataFrame, a pyarrow Table or RecordBatch, or a DuckDB "
        f"relation, not {type(frame).__name__}"
    )


def missing_column(name: object, there: Sequence[object]) -> str:
    """Say that a frame has no such column, and which ones it has."""
    shown = [str(column) for column in there]
    near = difflib.get_close_matches(str(name), shown, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, shown[:20]))}"
    return f"no column {name!r}: {hint}"


def column_names(columns: Any) -> list[Any]:
    """Return a name or names of columns as a list that is not empty."""
    several = isinstance(columns, Iterable) and not isinstance(columns, str)
    if not (names := [*dict.fromkeys(columns)] if several else [columns]):
        raise ParameterError("columns must be at least one, got none")
    return names


def paths_of(names: list[Any], there: list[Any]) -> list[tuple[int, list[str]]]:
    """Return the place of the column of each name, and the path of the field within it."""
    paths = []
    for name in names:
        # A name with points names a nested field, unless a column has this name.
        first, *path = [name] if name in there else str(name).split(".")
        if first not in there:
            raise ParameterError(missing_column(first, there))
        if there.count(first) != 1:
            raise ParameterError(f"column {first!r} is there {there.count(first)} times: rename it")
        paths.append((there.index(first), path))
    return paths


def drawn_columns(mechanism: MechanismCore, table: Any, places: list[tuple[int, list[str]]]) -> Any:
    """Return an Arrow table or batch with drawn columns at these places, each with its path."""
    for at, path in places:
        field = table.schema.field(at)
        new = privatize_arrow(mechanism, table.column(at), path, field)[0]
        table = table.set_column(at, field.with_type(new.type), new)
    return table


_OWN = (b"ARROW:extension:name", b"ARROW:extension:metadata", b"PARQUET:field_id")
_PANDAS = {
    "": {"index_columns", "column_indexes", "columns", "creator", "pandas_version"},
    "columns": {"name", "field_name", "pandas_type", "numpy_type", "metadata"},
    "column_indexes": {"name", "field_name", "pandas_type", "numpy_type", "metadata"},
    "metadata": {"num_categories", "ordered", "encoding", "timezone", "precision", "scale", "unit"},
    "index_columns": {"kind", "name", "start", "stop", "step"},
    "creator": {"library", "version"},
}
"""The keys that pandas needs, in what stands under a key."""


def own_schema(schema: Any) -> tuple[Any, list[str]]:
    """Return a schema with only the metadata that Arrow and pandas need, and the dropped keys.

    Other metadata could hold private content.
    """
    import pyarrow as pa

    dropped: dict[str, None] = {}

    def own(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes]:
        kept = {}
        for key, value in (metadata or {}).items():
            if key in _OWN:
                kept[key] = value
            elif key == b"pandas" and (read := _own_pandas(value, dropped)) is not None:
                kept[key] = read
            else:
                dropped[key.decode("utf-8", "replace")] = None
        return kept

    def own_field(old: Any) -> Any:
        kind = _with_fields(old.type, own_field)
        return pa.field(old.name, kind, old.nullable, own(old.metadata))

    fields = [own_field(column) for column in schema]
    return pa.schema(fields, own(schema.metadata)), list(dropped)


def _own_pandas(metadata: bytes, dropped: dict[str, None]) -> bytes | None:
    """Return the part of its metadata that pandas needs; ``attrs`` are dropped as user data."""
    import json

    def own(key: str, given: Any) -> Any:
        if isinstance(given, list):
            return [x if key == "index_columns" and isinstance(x, str) else own(key, x)
                    for x in given]  # fmt: skip
        if not isinstance(given, dict):
            raise TypeError
        dropped.update((f"pandas: {k}", None) for k in given if k not in _PANDAS[key])
        kept = {k: v for k, v in given.items() if k in _PANDAS[key]}
        return {k: own(k, v) if k in _PANDAS and v is not None else v for k, v in kept.items()}

    try:
        kept = {"index_columns": [], "creator": {}, **own("", json.loads(metadata))}
    except (ValueError, TypeError, RecursionError):
        return None
    return json.dumps(kept).encode()
