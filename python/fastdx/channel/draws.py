"""Draws of every word, from which a law that nobody can compute is estimated."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from fastdx._core import ChannelCore
from fastdx._shared.checks import counted
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism, from_spec

AT_ONCE = 1 << 20
"""Outputs that are drawn at a time."""
SEED = 0
"""All estimates are seeded alike: a receiver makes the one that the sender has."""


def estimated_core(
    mechanism: Mechanism, draws: int, cache_bytes: SupportsIndex | None
) -> ChannelCore:
    """Draw so many outputs of every word, and return the core of the law that they estimate."""
    mechanism._check_one_law()
    if mechanism.has_law:
        raise ParameterError("estimate must be None for a mechanism that has a law: it is exact")
    counted("estimate", draws, 2, (1 << 31) - 1)
    # Each draw by itself, whatever the mechanism does with a text's repeated words.
    spec = {**mechanism.spec, "seed": SEED, "consistent": False}
    remap = mechanism.remap if isinstance(spec.get("remap"), dict) else None
    seeded = from_spec(spec, mechanism.space, remap=remap)
    words = len(mechanism.space)
    starts, outputs, times = [0], [], []
    together = max(1, AT_ONCE // draws)
    for first in range(0, words, together):
        ids = np.arange(first, min(first + together, words), dtype=np.uint32)
        drawn = seeded.privatize_ids(np.repeat(ids, draws)).astype(np.int64)
        row = np.repeat(np.arange(len(ids), dtype=np.int64), draws)
        keys, counts = np.unique(row * words + drawn, return_counts=True)
        ends = starts[-1] + np.searchsorted(keys, words * np.arange(1, len(ids) + 1))
        starts += ends.tolist()
        outputs.append((keys % words).astype(np.uint32))
        times.append(counts.astype(np.uint32))
    return ChannelCore.estimated(
        mechanism, draws, starts, np.concatenate(outputs), np.concatenate(times), cache_bytes
    )
