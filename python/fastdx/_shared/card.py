"""The channel card beside a release and in the metadata of tables: how it is written and read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastdx._core import MechanismCore
from fastdx.exceptions import MissingFileError, ParameterError

__all__ = ["KEY", "SUFFIX", "beside", "card_of", "found", "is_there", "no_card", "with_card"]

KEY = "fastdx.channel"
"""The key of the card in the metadata of a schema or a column."""
SUFFIX = ".channel.json"
"""What the name of a release is followed by in that of its card."""
TABLES = {".parquet": "parquet", ".pq": "parquet", ".feather": "ipc", ".arrow": "ipc"}
"""Files whose schema has metadata."""


def no_card(mechanism: MechanismCore) -> str | None:
    """Return why a mechanism has no card; None if it has one."""
    if mechanism.seed is not None:
        return "it has a seed: its releases protect nobody"
    if not mechanism.has_law:
        return "its law cannot be computed"
    return None


def card_of(mechanism: MechanismCore) -> str | None:
    """Return the card of a mechanism's channel as JSON, or None if it has none."""
    return None if no_card(mechanism) else mechanism._card()


def beside(name: str | os.PathLike[str]) -> Path:
    """Return where the card of a release lies."""
    path = Path(name)
    return path.with_name(path.name + SUFFIX)


def is_there(name: str) -> bool:
    """Return whether a name is one of a file, and no card itself."""
    return not name.lstrip().startswith(("{", "[")) and os.path.exists(name)  # noqa: PTH110


def with_card(schema: Any, card: str | None) -> Any:
    """Return an Arrow schema with a card in its metadata."""
    if card is None:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), KEY.encode(): card.encode()})


def found(path: Path) -> str:
    """Return the card that a file is, that a table holds, or that lies beside a release.

    Raises
    ------
    MissingFileError
        There is no such file.
    ParameterError
        A release without a card.
    """
    if path.suffix.lower() in TABLES and path.is_file():
        import pyarrow
        import pyarrow.parquet

        if TABLES[path.suffix.lower()] == "parquet":
            schema = pyarrow.parquet.read_schema(path)
        else:
            with pyarrow.memory_map(str(path)) as source:
                schema = pyarrow.ipc.open_file(source).schema
        held = (schema.metadata or {}).get(KEY.encode())
        if held is not None:
            return str(held.decode())
    if path.suffix.lower() != ".json" or not path.name.endswith(SUFFIX):
        near = beside(path)
        if near.is_file():
            path = near
        elif path.is_file() and path.suffix.lower() != ".json":
            raise ParameterError(f"card must be a card or a release with one: {path} has none "
                                 f"within, and {near.name} is not beside it")  # fmt: skip
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise MissingFileError(None, "no such file", str(path)) from None
