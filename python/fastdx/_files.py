"""Streaming text, CSV, JSONL and Parquet through a function on lists of texts.

Every reader works on batches of bounded size, so memory stays flat whatever the size of a file.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

BATCH = 4 << 20
"""Characters of text privatised in one call."""
LONGEST = 64 << 20
"""Bytes of a line, or of plain text without white space, beyond which input is refused: memory
must stay flat."""

MOST_NAMES = 100
"""Names of untouched fields that the closing line lists at most."""

Privatise = Callable[[list[str]], list[str]]


class Stop(Exception):
    """A message for the user that ends the command."""


class Progress(Protocol):
    """Told how many bytes of input have been read."""

    def __call__(self, count: int) -> None:
        """Take note of `count` more bytes."""


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


@contextlib.contextmanager
def open_output(name: str | None) -> Iterator[BinaryIO]:
    """Open the output: standard output, or a temporary sibling that is renamed at the end."""
    if name is None or name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(name)
    if target.exists() and not (target.is_file() or target.is_dir()):
        # A pipe or a device is written to, not replaced.
        with target.open("wb") as special:
            yield special
        return
    target = target.resolve()  # a link stays a link
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as plain:
            if name.endswith(".gz"):
                with gzip.GzipFile(filename="", fileobj=plain, mode="wb") as zipped:
                    yield cast(BinaryIO, zipped)
            else:
                yield plain
            plain.flush()
            if target.is_file():
                temporary.chmod(target.stat().st_mode & 0o7777)
            os.fsync(plain.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _decode(data: bytes, name: str, offset: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Stop(f"{name}: byte {offset + e.start} is not UTF-8") from None


def _lines(source: BinaryIO, name: str) -> Iterator[str]:
    """Yield lines with their line ends; only a line feed ends a line."""
    offset = 0
    while line := source.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise Stop(f"{name}: a line of more than {LONGEST} bytes at byte {offset}")
        text = _decode(line, name, offset)
        yield text if offset else text.removeprefix("\ufeff")
        offset += len(line)


def plain_text(
    names: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
    *,
    by_line: bool = False,
) -> None:
    """Privatise plain text, keeping everything between the words byte for byte."""
    # No word crosses white space; cutting there changes nothing.
    what = "a line end" if by_line else "white space"
    between = (b"\n",) if by_line else (b" ", b"\n", b"\t")
    for name in names:
        with open_input(name, progress) as source:
            rest, offset = b"", 0
            while block := source.read(BATCH):
                block = rest + block
                cut = max(block.rfind(c) for c in between) + 1
                if cut == 0 and len(block) > LONGEST:
                    raise Stop(f"{name}: {len(block)} bytes without {what} are no text")
                rest = block[cut:]
                if cut:
                    out.write(private([_decode(block[:cut], name, offset)])[0].encode())
                offset += cut
            out.write(private([_decode(rest, name, offset)])[0].encode())


def _batches(
    rows: Iterable[tuple[Any, list[str]]], private: Privatise
) -> Iterator[tuple[Any, list[str]]]:
    """Privatise the texts of rows in batches, yielding each row with its new texts."""
    waiting: list[tuple[Any, list[str]]] = []
    size = 0

    def flush() -> Iterator[tuple[Any, list[str]]]:
        texts = iter(private([text for _, texts in waiting for text in texts]))
        for row, old in waiting:
            yield row, [next(texts) for _ in old]
        waiting.clear()

    for row, texts in rows:
        waiting.append((row, texts))
        size += 64 + sum(map(len, texts))
        if size >= BATCH:
            yield from flush()
            size = 0
    yield from flush()


def delimited(
    names: Sequence[str],
    columns: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
    *,
    delimiter: str,
) -> list[str]:
    """Privatise columns of CSV files with a header; return the columns left as they were."""
    csv.field_size_limit(LONGEST)
    text_out = io.TextIOWrapper(out, "utf-8", newline="", write_through=True)
    header: list[str] | None = None
    try:
        for name in names:
            with open_input(name, progress) as source:
                lines = _lines(source, name)
                first = next(lines, None)
                if first is None:
                    raise Stop(f"{name}: no header: the file is empty")
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
                    raise Stop(f"{name}: its header differs from that of {names[0]}")
                for row, texts in _batches(_csv_rows(name, reader, len(own), where), private):
                    for at, text in zip(where, texts, strict=False):
                        row[at] = text
                    writer.writerow(row)
    finally:
        with contextlib.suppress(ValueError):
            text_out.detach()
    return [c for c in header or [] if c not in columns]


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _column(name: str, header: Sequence[str], column: str) -> int:
    if column not in header:
        raise Stop(f"{name}: no column {column!r}; it has {', '.join(map(repr, header))}")
    if header.count(column) > 1:
        raise Stop(f"{name}: {header.count(column)} columns are called {column!r}")
    return header.index(column)


def _csv_rows(
    name: str, reader: Any, width: int, where: Sequence[int]
) -> Iterator[tuple[list[str], list[str]]]:
    for row in _csv_lines(name, reader):
        if row and len(row) != width:
            at = f"{name}, line {reader.line_num}"
            raise Stop(f"{at}: {len(row)} fields, the header has {width}")
        yield row, [row[at] for at in where] if row else []


def _csv_lines(name: str, reader: Any) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as e:
        raise Stop(f"{name}, line {reader.line_num}: {e}") from None


def json_lines(
    names: Sequence[str],
    columns: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
) -> list[str]:
    """Privatise fields of JSON objects, one a line; return the fields left as they were."""
    left: dict[str, None] = {}

    def rows(source: BinaryIO, name: str) -> Iterator[tuple[Any, list[str]]]:
        for number, line in enumerate(_lines(source, name), 1):
            if not line.strip():
                yield None, []
                continue
            at = f"{name}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise Stop(f"{at}: not JSON: {e}") from None
            if not isinstance(record, dict):
                raise Stop(f"{at}: not a JSON object")
            if len(left) < MOST_NAMES:
                left.update(dict.fromkeys(k for k in record if k not in columns))
            yield record, [t for c in columns for t in _json_texts(at, record, c)]

    for name in names:
        with open_input(name, progress) as source:
            for record, texts in _batches(rows(source, name), private):
                if record is None:
                    out.write(b"\n")
                    continue
                new = iter(texts)
                for c in columns:
                    old = record[c]
                    if isinstance(old, list):
                        record[c] = [next(new) for _ in old]
                    elif old is not None:
                        record[c] = next(new)
                out.write(_json_line(name, record))
    return list(left)


def _json_line(name: str, record: dict[str, Any]) -> bytes:
    try:
        try:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can only escape
            line = json.dumps(record, allow_nan=False).encode()
    except ValueError as e:
        raise Stop(f"{name}: a number that JSON does not have: {e}") from None
    return line + b"\n"


def _json_texts(at: str, record: dict[str, Any], column: str) -> list[str]:
    if column not in record:
        raise Stop(f"{at}: no field {column!r}; it has {', '.join(map(repr, record))}")
    value = record[column]
    texts = [] if value is None else value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise Stop(f"{at}: field {column!r} holds a {type(text).__name__}, not text")
    return texts


def parquet(
    names: Sequence[str],
    columns: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
) -> list[str]:
    """Privatise string columns of Parquet files; return the columns left as they were."""
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError:
        raise Stop("Parquet needs pyarrow: pip install 'fastdx[parquet]'") from None
    writer: Any = None
    left: list[str] = []
    try:
        for name in names:
            if name == "-":
                raise Stop("Parquet cannot be read from standard input: name a file")
            try:
                source = pq.ParquetFile(name)
            except pa.ArrowInvalid as e:
                raise Stop(f"{name}: {e}") from None
            schema = source.schema_arrow
            for c in columns:
                kind = schema.field(_column(name, schema.names, c)).type
                if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                    raise Stop(f"{name}: column {c!r} holds {kind}, not text")
            left = [c for c in schema.names if c not in columns]
            if writer is None:
                writer = pq.ParquetWriter(out, schema)
            elif not writer.schema.equals(schema):
                raise Stop(f"{name}: its columns differ from those of {names[0]}")
            size, rows = Path(name).stat().st_size, max(source.metadata.num_rows, 1)
            for old_batch in source.iter_batches(batch_size=4096):
                batch = old_batch
                for c in columns:
                    at = batch.schema.get_field_index(c)
                    old = batch.column(at).to_pylist()
                    new = iter(private([t for t in old if t is not None]))
                    values = [None if t is None else next(new) for t in old]
                    array = pa.array(values, type=batch.schema.field(at).type)
                    batch = batch.set_column(at, batch.schema.field(at), array)
                writer.write_batch(batch)
                progress(size * batch.num_rows // rows)
    finally:
        if writer is not None:
            writer.close()
    return left


def total_size(names: Sequence[str]) -> int | None:
    """Return the bytes of all input files, or None when one has no size."""
    if any(name == "-" for name in names):
        return None
    return sum(Path(name).stat().st_size for name in names)
