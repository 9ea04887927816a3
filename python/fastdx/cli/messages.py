"""What the command says: places and counts, never content, unless it is asked to."""

from __future__ import annotations

import sys
import time
from typing import Protocol


class CommandError(Exception):
    """A message for the user that ends the command: where and how many, never content.

    `shown` is the content that it is about, for those who ask for it by ``--show-text``.
    """

    def __init__(self, message: str, shown: str = "") -> None:
        """Keep both."""
        super().__init__(message)
        self.shown = shown


class Progress(Protocol):
    """Told how many bytes of input have been read."""

    def __call__(self, count: int) -> None:
        """Take note of `count` more bytes."""


class Bar:
    """A line on the terminal that shows how far the work is; silent elsewhere."""

    def __init__(self, total: int | None, quiet: bool) -> None:
        """Start."""
        self.total = total
        self.done = 0
        self.shown = self.start = time.monotonic()
        self.active = not quiet and sys.stderr.isatty()

    def __call__(self, count: int) -> None:
        """Take note of `count` more bytes."""
        self.done += count
        now = time.monotonic()
        if self.active and now - self.shown > 0.1:
            self.shown = now
            rate = self.done / 1e6 / (now - self.start)
            share = f"{self.done / self.total:4.0%} " if self.total else ""
            print(f"\r\x1b[K{share}{self.done / 1e6:.0f} MB, {rate:.1f} MB/s", end="",
                  file=sys.stderr, flush=True)  # fmt: skip

    def clear(self) -> None:
        """Take the line away."""
        if self.active:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
