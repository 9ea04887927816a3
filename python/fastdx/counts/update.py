"""Frequencies of words from many outputs: the maximum likelihood, stopped in time or smoothed.

Expectation maximisation (Agrawal and Aggarwal 2001, "On the design and quantification of privacy
preserving data mining algorithms"): each round is at least as likely as the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fastdx._core import ChannelCore

_Numbers = NDArray[np.float64]

ROUNDS = 100
"""The most rounds."""
PATIENCE = 3
"""Rounds without a gain on the other half after which the search for their number stops."""
WORDS = 256
"""Words whose laws are worked on together."""


class Update:
    """The update of the frequencies of all words, and of unknown ones behind them."""

    def __init__(
        self,
        core: ChannelCore,
        outputs: NDArray[np.int64],
        start: _Numbers,
        unknown: float,
        memory: int,
    ) -> None:
        """Take the ids of the outputs that are counted, and the frequencies at the start.

        A word at 0 stays there; `unknown` is 0 if outputs hide no unknown words. So many bytes of
        the law are kept between rounds; the rest is computed in each.
        """
        self._core, self._outputs, self._words = core, outputs, len(start)
        self._start = np.append(start * (1 - unknown), [unknown] * (unknown > 0))
        self._free, self._kept = memory, dict[int, NDArray[np.float32]]()
        self._hidden = core.unknown_law()[None, outputs].astype(np.float32)

    def _laws(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        for first in range(0, self._words, WORDS):
            part = slice(first, min(first + WORDS, self._words))
            rows = self._kept.get(first)
            if rows is None:
                laws = self._core.laws(np.arange(part.start, part.stop))
                rows = laws[:, self._outputs].astype(np.float32)
                if rows.nbytes <= self._free:
                    self._kept[first], self._free = rows, self._free - rows.nbytes
            yield part, rows
        if len(self._start) > self._words:
            yield slice(self._words, None), self._hidden

    def rounds(self, counts: _Numbers, smooth: float = 0.0) -> Iterator[tuple[_Numbers, _Numbers]]:
        """Yield x and xK after 0, 1, 2, … rounds, for a row of counts of the outputs each.

        With `smooth` so many words, of the frequencies at the start, are added to those behind each
        row: a Dirichlet prior.
        """
        x = np.tile(self._start, (len(counts), 1))
        total = counts.sum(axis=1, keepdims=True)
        ratios: NDArray[np.float32] | None = None
        while True:
            p = np.zeros_like(counts)
            for part, rows in self._laws():
                if ratios is not None:
                    x[:, part] *= ratios @ rows.T
                    x[:, part] += smooth / (total + smooth) * self._start[part]
                p += x[:, part].astype(np.float32) @ rows
            yield x, p
            weights = np.divide(counts, p, out=np.zeros_like(p), where=p > 0)
            ratios = (weights / (total + smooth)).astype(np.float32)

    def fitted(self, halves: NDArray[np.float64]) -> tuple[_Numbers, int]:
        """Return the frequencies from the counts of two halves, shape (2, m), and the rounds."""
        seen = halves[1] > 0
        best, found = -np.inf, 0
        for done, (_, p) in zip(range(ROUNDS + 1), self.rounds(halves[:1]), strict=False):
            with np.errstate(divide="ignore"):
                value = float(halves[1, seen] @ np.log(p[0, seen]))
            if value > best:
                best, found = value, done
            elif done >= found + PATIENCE:
                break
        return self.after(found, halves.sum(axis=0, keepdims=True))[0], found

    def after(self, rounds: int, counts: _Numbers, smooth: float = 0.0) -> _Numbers:
        """Return the frequencies after so many rounds, a row for each of the counts."""
        return next(islice(self.rounds(counts, smooth), rounds, None))[0]
