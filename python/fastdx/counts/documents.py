"""Documents as `Estimator.add` takes them: texts, lists of texts, columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdx._shared.kinds import is_missing
from fastdx.exceptions import InputTypeError


def texts_and_sizes(given: Any) -> tuple[list[str], list[int]]:
    """Return the texts of what was given, and how many of them make each document."""
    if isinstance(given, str):
        return [given], [1]
    frame = hasattr(given, "columns")
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(given, name):
            given = getattr(given, name)()
            break
    if frame or isinstance(given, (bytes, dict)) or not isinstance(given, Iterable):
        raise InputTypeError("texts must be a str, a list or a column of a frame, not "
                             f"{type(given).__name__}")  # fmt: skip
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


def words_of(lengths: NDArray[np.uint32], sizes: list[int]) -> NDArray[np.uint32]:
    """Return the words of documents that so many texts make."""
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    words: NDArray[np.uint32] = np.diff(ends[bounds]).astype(np.uint32)
    return words
