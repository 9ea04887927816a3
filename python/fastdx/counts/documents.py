"""Documents as `Estimator.add` takes them: texts, lists of texts, columns, frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdx._shared.missing import is_missing
from fastdx.exceptions import InputTypeError, ParameterError


def texts_and_sizes(given: Any, column: str | None) -> tuple[list[str], list[int]]:
    """Return the texts of what was given, and how many of them make each document."""
    if isinstance(given, str):
        return [given], [1]
    given = _column(given, column)
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(given, name):
            given = getattr(given, name)()
            break
    if isinstance(given, (bytes, dict)) or not isinstance(given, Iterable):
        raise InputTypeError(f"texts must be a str, a list or a column, not {type(given).__name__}")
    texts: list[str] = []
    sizes = []
    for at, one in enumerate(given):
        if is_missing(one):
            continue
        parts = [one] if isinstance(one, str) else one
        if isinstance(parts, (bytes, dict)) or not isinstance(parts, Iterable):
            raise InputTypeError(f"texts[{at}] must be a str or a list of them, not "
                                 f"{type(one).__name__}")  # fmt: skip
        before = len(texts)
        for place, part in enumerate(parts):
            if isinstance(part, str):
                texts.append(part)
            elif not is_missing(part):
                raise InputTypeError(f"texts[{at}][{place}] must be a str, not "
                                     f"{type(part).__name__}")  # fmt: skip
        sizes.append(len(texts) - before)
    return texts, sizes


def _column(given: Any, column: str | None) -> Any:
    """Return the column of a frame; what is no frame as it is."""
    if type(given).__module__.startswith("pyspark."):
        raise InputTypeError("texts must not be of Spark: let each of its parts count, and add up "
                             "(rdd.mapPartitions)")  # fmt: skip
    if type(given).__name__ == "DuckDBPyRelation":
        import pyarrow

        given = pyarrow.table(given)
    if column is None:
        if hasattr(given, "columns"):
            raise InputTypeError("column must be given for a frame: which of its columns is text")
        return given
    names = getattr(given, "column_names", getattr(given, "columns", ()))
    if column not in list(names):
        raise ParameterError(f"column must be one of the frame's, got {column!r}")
    return given[column]


def words_of(lengths: NDArray[np.uint32], sizes: list[int]) -> NDArray[np.uint32]:
    """Return the words of documents that so many texts make."""
    if len(sizes) == len(lengths) and all(size == 1 for size in sizes):
        return lengths
    ends = np.concatenate([[0], np.cumsum(lengths.astype(np.int64))])
    bounds = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))])
    words: NDArray[np.uint32] = np.diff(ends[bounds]).astype(np.uint32)
    return words
