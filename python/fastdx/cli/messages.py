"""Messages and progress of the command; they show content only with ``--show-text``."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias


class CommandError(Exception):
    """An error that ends the command; its message has places and counts, but no content.

    `shown` is the content in question, which the command prints only with ``--show-text``.
    """

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(message)
        self.shown = shown


def tell(line: str, *, quiet: bool = False) -> None:
    """Print a line on the standard error, unless quiet."""
    if not quiet:
        print(f"fastdx: {line}", file=sys.stderr)


Progress: TypeAlias = Callable[[int], object]
"""A function that is called with the number of bytes of input just read."""


def _line(text: str) -> None:
    """Show a line in place of the previous one."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _left(seconds: float, done: int, total: int) -> str:
    """Return how long the rest takes, if it goes on as what is done."""
    left = round(seconds * max(total - done, 0) / done) if done else 0
    return f", {left // 60} min {left % 60} s left"


class Bar:
    """A line that shows progress on a terminal; without a terminal it shows nothing."""

    def __init__(self, total: int | None, quiet: bool) -> None:
        self.total = total
        self.done = self._skipped = 0
        self.shown = self.start = time.monotonic()
        self.active = not quiet and sys.stderr.isatty()

    def __call__(self, count: int) -> None:
        """Add `count` bytes."""
        self.done += count
        now = time.monotonic()
        if self.active and now - self.shown > 0.1:
            self.shown = now
            # A coarse clock may stand still after `skip`.
            worked, seconds = self.done - self._skipped, max(now - self.start, 1e-3)
            line = f"{self.done / 1e6:.0f} MB, {worked / 1e6 / seconds:.1f} MB/s"
            if self.total:
                left = _left(seconds, worked, self.total - self._skipped)
                line = f"{self.done / self.total:4.0%} {line}{left}"
            _line(line)

    def skip(self, count: int = 0) -> None:
        """Add `count` bytes, and measure the speed without all that came before."""
        self.done += count
        self._skipped, self.start = self.done, time.monotonic()

    def clear(self) -> None:
        """Remove the line."""
        if self.active:
            self.active = False
            _line("")


FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LATE_SECONDS = 0.5
"""Seconds after which a running step is shown."""


@contextmanager
def step(
    what: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show that a step runs, if it takes long; on a terminal only.

    Yields a function that a step may call with the number of words done, of `total` ones.
    """
    done = 0

    def progress(count: int) -> None:
        nonlocal done
        done = count

    if quiet or not sys.stderr.isatty():
        yield progress
        return
    ended = threading.Event()

    def show() -> None:
        start, frame = time.monotonic(), 0
        pause = LATE_SECONDS
        while not ended.wait(pause):
            pause, frame = 0.1, frame + 1
            count = f", {done:,} words" if done else ""
            seconds = time.monotonic() - start
            left = _left(seconds, done, total) if total else ""
            _line(f"{FRAMES[frame % len(FRAMES)]} {what}{count}, {seconds:.0f} s{left}")
        if pause != LATE_SECONDS:
            _line("")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        ended.set()
        thread.join()
