"""Reads and writes the channel card beside a release or in the metadata of a table."""

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
"""The ending that makes the name of a card from the name of its release."""


def no_card(mechanism: MechanismCore) -> str | None:
    """Return the reason why a mechanism has no card; None if it has one."""
    if mechanism.seed is not None:
        return "it has a seed: its releases protect nobody"
    if not mechanism.has_law:
        return "its law cannot be computed"
    return None


def card_of(mechanism: MechanismCore) -> str | None:
    """Return the card of a mechanism's channel as JSON, or None if it has none."""
    return None if no_card(mechanism) else mechanism._card()


def beside(name: str | os.PathLike[str]) -> Path:
    """Return the path of the card of a release."""
    path = Path(name)
    return path.with_name(path.name + SUFFIX)


def is_there(name: str) -> bool:
    """Return whether a string is the name of an existing file, and not a card as JSON."""
    return not name.lstrip().startswith(("{", "[")) and os.path.exists(name)  # noqa: PTH110


def with_card(schema: Any, card: str | None) -> Any:
    """Return an Arrow schema with a card in its metadata."""
    if card is None:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), KEY.encode(): card.encode()})


def found(path: Path) -> str:
    """Return the card in a file, in the metadata of a table, or beside a release.

    Raises
    ------
    MissingFileError
        The file does not exist.
    ParameterError
        The release has no card.
    """
    if path.suffix.lower() in (".parquet", ".pq") and path.is_file():
        import pyarrow.parquet

        schema = pyarrow.parquet.read_schema(path)
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
