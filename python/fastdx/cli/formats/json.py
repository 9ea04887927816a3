"""JSON objects, one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from fastdx.cli.formats.batches import MOST_NAMES, Privatise, Released, Row, batches
from fastdx.cli.formats.opening import lines_of, open_input
from fastdx.cli.messages import CommandError, Progress


def json_lines(
    names: Sequence[str],
    columns: Sequence[str],
    out: BinaryIO,
    private: Privatise,
    progress: Progress,
) -> Released:
    """Privatise fields of JSON objects, one a line; return what was left as it was."""
    left: dict[str, None] = {}

    def rows(source: BinaryIO, name: str) -> Iterator[Row]:
        for number, line in enumerate(lines_of(source, name), 1):
            if not line.strip():
                yield Row(number, None, [])
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
            yield Row(number, record, [t for c in columns for t in _json_texts(at, record, c)])

    for name in names:
        with open_input(name, progress) as source:
            for row in batches(name, rows(source, name), columns, private):
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
