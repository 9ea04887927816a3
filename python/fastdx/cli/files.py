"""Streaming text, CSV, JSONL and Parquet through a function on lists of texts.

Every reader works on batches of bounded size, so memory stays flat whatever the size of a file.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from fastdx.cli.messages import CommandError, Progress
from fastdx.exceptions import UnknownWordError

BATCH = 4 << 20
"""Characters of text privatised in one call."""
LONGEST = 64 << 20
"""Bytes of a line, or of plain text without white space, beyond which input is refused: memory
must stay flat."""

MOST_NAMES = 100
"""Names of untouched fields that the closing line lists at most."""

Privatise = Callable[[list[str]], list[str]]


@dataclass
class Released:
    """What left as it came, and what did not."""

    names: list[str]
    """Columns or fields released as they were."""
    content: bool = False
    """Whether the names are content themselves: JSON's fields, which every record names anew."""
    dropped: list[str] = field(default_factory=list)
    """Keys of metadata that were dropped."""


def format_of(name: str) -> str:
    """Return the format that a file's name suggests: csv, tsv, jsonl, parquet or text."""
    suffixes = Path(name.removesuffix(".gz")).suffix.lower()
    known = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    return "parquet" if suffixes in (".parquet", ".pq") else known.get(suffixes, "text")


class _Counting(io.RawIOBase):
    """A raw stream that reports what is read from it."""

    def __init__(self, raw: BinaryIO, progress: Progress) -> None:
        self._raw = raw
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._progress(len(data))
        return len(data)

    def close(self) -> None:
        if self._raw is not sys.stdin.buffer:
            self._raw.close()
        super().close()


def open_input(name: str, progress: Progress) -> BinaryIO:
    """Open a file ('-': standard input) for reading bytes, unzipping gzip by its content."""
    raw: BinaryIO = sys.stdin.buffer if name == "-" else Path(name).open("rb")  # noqa: SIM115
    buffered = io.BufferedReader(_Counting(raw, progress), 1 << 20)
    if buffered.peek(2)[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    return buffered


def _decode(data: bytes, name: str, offset: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise CommandError(f"{name}: byte {offset + e.start} is not UTF-8") from None


def _lines(source: BinaryIO, name: str) -> Iterator[str]:
    """Yield lines with their line ends; only a line feed ends a line."""
    offset = 0
    while line := source.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise CommandError(f"{name}: a line of more than {LONGEST} bytes at byte {offset}")
        text = _decode(line, name, offset)
        yield text if offset else text.removeprefix("\ufeff")
        offset += len(line)


def plain_text(
    names: Sequence[str],
    out: BinaryIO,
    private: Callable[[], Privatise],
    progress: Progress,
    *,
    by_line: bool = False,
) -> Released:
    """Privatise plain text, keeping everything between the words byte for byte.

    `private` makes a function for each file, which is one text that comes in pieces.
    """
    # No word crosses white space; cutting there changes nothing.
    what = "a line end" if by_line else "white space"
    between = (b"\n",) if by_line else (b" ", b"\n", b"\t")

    def written(function: Privatise, piece: bytes, name: str, offset: int) -> bytes:
        text = _decode(piece, name, offset)
        try:
            return function([text])[0].encode()
        except UnknownWordError as e:
            at = piece[: e.start or 0].count(b"\n") + lines + 1
            raise _unknown(e, f"{name}, line {at}") from None

    for name in names:
        function = private()
        with open_input(name, progress) as source:
            rest, offset, lines = b"", 0, 0
            while block := source.read(BATCH):
                block = rest + block
                cut = max(block.rfind(c) for c in between) + 1
                if cut == 0 and len(block) > LONGEST:
                    raise CommandError(f"{name}: {len(block)} bytes without {what} are no text")
                rest = block[cut:]
                if cut:
                    out.write(written(function, block[:cut], name, offset))
                offset += cut
                lines += block.count(b"\n", 0, cut)
            out.write(written(function, rest, name, offset))
    return Released([])


def _unknown(error: UnknownWordError, place: str) -> CommandError:
    word = error.word or ""
    message = f"{place}: a word of {len(word)} characters is not in the vocabulary (--oov error)"
    return CommandError(message, repr(word))


@dataclass
class _Row:
    """A record, where it stands (a line, or row of a table), and the texts in it."""

    line: int
    record: Any
    texts: list[str]


def _batches(
    name: str,
    rows: Iterable[_Row],
    columns: Sequence[str],
    private: Privatise,
    *,
    unit: str = "line",
) -> Iterator[_Row]:
    """Privatise the texts of rows in batches, yielding each row with its new texts."""
    waiting: list[_Row] = []
    size = 0

    def flush() -> Iterator[_Row]:
        texts = [text for row in waiting for text in row.texts]
        try:
            new = iter(private(texts))
        except UnknownWordError as e:
            raise _unknown(e, _place(name, unit, waiting, columns, e.text or 0)) from None
        except UnicodeEncodeError:
            half = next(i for i, t in enumerate(texts) if any("\ud800" <= c <= "\udfff" for c in t))
            place = _place(name, unit, waiting, columns, half)
            raise CommandError(f"{place}: the text holds half of a surrogate pair") from None
        for row in waiting:
            row.texts = [next(new) for _ in row.texts]
            yield row
        waiting.clear()

    for row in rows:
        waiting.append(row)
        size += 64 + sum(map(len, row.texts))
        if size >= BATCH:
            yield from flush()
            size = 0
    yield from flush()


def _place(name: str, unit: str, rows: Sequence[_Row], columns: Sequence[str], text: int) -> str:
    """Where the n-th text of some rows stands."""
    for row in rows:
        if text < len(row.texts):
            column = f", column {columns[text]!r}" if len(row.texts) == len(columns) else ""
            return f"{name}, {unit} {row.line}{column}"
        text -= len(row.texts)
    return name


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
                lines = _lines(source, name)
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
                where = [_column(name, own, c) for c in columns]
                if header is None:
                    header = own
                    writer.writerow(own)
                elif header != own:
                    raise CommandError(f"{name}: its header differs from that of {names[0]}")
                rows = _csv_rows(name, reader, len(own), where)
                for row in _batches(name, rows, columns, private):
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


def _column(name: str, header: Sequence[str], column: str) -> int:
    if column not in header:
        # Of a file without a header these are the first record.
        message = f"{name}: none of its {len(header)} columns is called {column!r}"
        raise CommandError(message, ", ".join(map(repr, header)))
    if header.count(column) > 1:
        raise CommandError(f"{name}: {header.count(column)} columns are called {column!r}")
    return header.index(column)


def _csv_rows(name: str, reader: Any, width: int, where: Sequence[int]) -> Iterator[_Row]:
    for row in _csv_lines(name, reader):
        if row and len(row) != width:
            at = f"{name}, line {reader.line_num}"
            raise CommandError(f"{at}: {len(row)} fields, the header has {width}")
        yield _Row(reader.line_num, row, [row[at] for at in where] if row else [])


def _csv_lines(name: str, reader: Any) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as e:
        raise CommandError(f"{name}, line {reader.line_num}: {e}") from None


def json_lines(
    names: Sequence[str],
    columns: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
) -> Released:
    """Privatise fields of JSON objects, one a line; return what was left as it was."""
    left: dict[str, None] = {}

    def rows(source: BinaryIO, name: str) -> Iterator[_Row]:
        for number, line in enumerate(_lines(source, name), 1):
            if not line.strip():
                yield _Row(number, None, [])
                continue
            at = f"{name}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as e:
                where = f" at character {e.pos}" if isinstance(e, json.JSONDecodeError) else ""
                raise CommandError(f"{at}: not JSON{where}") from None
            if not isinstance(record, dict):
                raise CommandError(f"{at}: not a JSON object")
            if len(left) < MOST_NAMES:
                left.update(dict.fromkeys(k for k in record if k not in columns))
            yield _Row(number, record, [t for c in columns for t in _json_texts(at, record, c)])

    for name in names:
        with open_input(name, progress) as source:
            for row in _batches(name, rows(source, name), columns, private):
                record = row.record
                if record is None:
                    out.write(b"\n")
                    continue
                new = iter(row.texts)
                for c in columns:
                    old = record[c]
                    if isinstance(old, list):
                        record[c] = [next(new) for _ in old]
                    elif old is not None:
                        record[c] = next(new)
                out.write(_json_line(f"{name}, line {row.line}", record))
    return Released(list(left), content=True)


def _json_line(at: str, record: dict[str, Any]) -> bytes:
    try:
        try:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can only escape
            line = json.dumps(record, allow_nan=False).encode()
    except ValueError as e:
        raise CommandError(f"{at}: a number that JSON does not have", str(e)) from None
    return line + b"\n"


def _json_texts(at: str, record: dict[str, Any], column: str) -> list[str]:
    if column not in record:
        message = f"{at}: none of its {len(record)} fields is called {column!r}"
        raise CommandError(message, ", ".join(map(repr, record)))
    value = record[column]
    texts = [] if value is None else value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise CommandError(f"{at}: field {column!r} holds a {type(text).__name__}, not text")
    return texts


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
                kind = schema.field(_column(name, schema.names, c)).type
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
    texts = [_Row(row + i, None, [t]) for i, t in enumerate(old) if t is not None]
    new = iter([r.texts[0] for r in _batches(name, texts, [column], private, unit="row")])
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


def total_size(names: Sequence[str]) -> int | None:
    """Return the bytes of all input files, or None when one has no size."""
    if any(name == "-" for name in names):
        return None
    return sum(Path(name).stat().st_size for name in names)
