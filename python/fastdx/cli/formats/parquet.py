"""Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from fastdx.cli.formats.batches import Privatise, Released, Row, batches, column_of
from fastdx.cli.messages import CommandError, Progress


def parquet(
    names: Sequence[str],
    columns: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
) -> Released:
    """Privatise string columns of Parquet files; return what was left as it was.

    Metadata that is not Arrow's or pandas' own is dropped: nobody knows what it says.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError:
        raise CommandError("Parquet needs pyarrow: pip install 'fastdx[parquet]'") from None
    writer: Any = None
    left: list[str] = []
    dropped: dict[str, None] = {}
    try:
        for name in names:
            if name == "-":
                raise CommandError("Parquet cannot be read from standard input: name a file")
            source = pq.ParquetFile(name)
            schema, keys = _own_metadata(source.schema_arrow)
            dropped.update(dict.fromkeys(keys))
            for c in columns:
                kind = schema.field(column_of(name, schema.names, c)).type
                if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                    raise CommandError(f"{name}: column {c!r} holds {kind}, not text")
            left = [c for c in schema.names if c not in columns]
            if writer is None:
                writer = pq.ParquetWriter(out, schema)
            elif not writer.schema.equals(schema):
                raise CommandError(f"{name}: its columns differ from those of {names[0]}")
            size, rows = Path(name).stat().st_size, max(source.metadata.num_rows, 1)
            row = 1
            for old_batch in source.iter_batches(batch_size=4096):
                arrays = old_batch.columns
                for c in columns:
                    at = schema.get_field_index(c)
                    new = _private_column(name, c, arrays[at], row, private)
                    arrays[at] = pa.array(new, type=schema.field(at).type)
                arrays = [
                    a if a.type.equals(f.type, check_metadata=True) else a.cast(f.type)
                    for a, f in zip(arrays, schema, strict=True)
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
                row += old_batch.num_rows
                progress(size * old_batch.num_rows // rows)
    except pa.ArrowException as e:
        # Its message may hold content.
        raise CommandError(f"{name}: damaged, or no Parquet file", str(e)) from None
    finally:
        if writer is not None:
            writer.close()
    return Released(left, dropped=list(dropped))


def _private_column(
    name: str, column: str, array: Any, row: int, private: Privatise
) -> list[str | None]:
    """Privatise an array of texts, which stand from a row on."""
    try:
        old = array.to_pylist()
    except UnicodeDecodeError:
        raise CommandError(f"{name}, from row {row}: column {column!r} is not UTF-8") from None
    texts = [Row(row + i, None, [t]) for i, t in enumerate(old) if t is not None]
    new = iter([r.texts[0] for r in batches(name, texts, [column], private, unit="row")])
    return [None if t is None else next(new) for t in old]


_OWN = (b"pandas", b"ARROW:extension:name", b"ARROW:extension:metadata", b"PARQUET:field_id")


def _own_metadata(schema: Any) -> tuple[Any, list[str]]:
    """Return the schema with Arrow's and pandas' metadata only, and the keys that went."""
    import pyarrow as pa

    dropped: dict[str, None] = {}

    def own(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes]:
        kept = {}
        for key, value in (metadata or {}).items():
            if key in _OWN:
                kept[key] = value
            else:
                dropped[key.decode("utf-8", "replace")] = None
        return kept

    def own_field(old: Any) -> Any:
        return pa.field(old.name, own_type(old.type), old.nullable, own(old.metadata))

    def own_type(old: Any) -> Any:
        """Rebuild a type of which fields are part."""
        if pa.types.is_struct(old):
            return pa.struct([own_field(child) for child in old])
        if pa.types.is_map(old):
            return pa.map_(own_field(old.key_field), own_field(old.item_field), old.keys_sorted)
        if pa.types.is_fixed_size_list(old):
            return pa.list_(own_field(old.value_field), old.list_size)
        if pa.types.is_large_list(old):
            return pa.large_list(own_field(old.value_field))
        if pa.types.is_list(old):
            return pa.list_(own_field(old.value_field))
        return old

    fields = [own_field(column) for column in schema]
    return pa.schema(fields, own(schema.metadata)), list(dropped)
