"""The laws of all words in blocks, and (k, γ) plausible deniability from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fastdx._core import ChannelCore
from fastdx.exceptions import ParameterError

_Numbers = NDArray[np.float64]

AT_ONCE = 256
"""Words whose laws are held at a time."""
BLOCK = 1 << 24
"""Numbers that are held at a time."""


def laws(
    core: ChannelCore, count: int, *, release: bool = True
) -> Iterator[tuple[slice, _Numbers]]:
    """Yield what all words become, block by block: which words, and a law a row.

    In a `release` skipped words become themselves. A block has 256 words and 128 MiB at most.
    """
    at_once = max(1, min(AT_ONCE, BLOCK // count))
    for first in range(0, count, at_once):
        part = slice(first, min(first + at_once, count))
        yield part, core.laws(np.arange(part.start, part.stop), release)


def deniable(core: ChannelCore, count: int, factor: float) -> NDArray[np.int64]:
    """Count, for every output, the words that are within `factor` of its likeliest word."""
    if not (isinstance(factor, (int, float)) and 1 <= factor < np.inf):
        raise ParameterError(f"factor must be at least 1 and finite, got {factor!r}")
    largest, found = np.zeros(count), np.zeros(count, np.int64)
    for _, law in laws(core, count):
        np.maximum(largest, law.max(axis=0), out=largest)
    for _, law in laws(core, count):
        found += (factor * law >= largest).sum(axis=0)
    return np.where(largest > 0, found, 0)
