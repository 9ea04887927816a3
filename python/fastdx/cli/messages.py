"""What the command says: places and counts, never content, unless it is asked to."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def _line(text: str) -> None:
    """Show a line in the place of the last one."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


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
            _line(f"{share}{self.done / 1e6:.0f} MB, {rate:.1f} MB/s")

    def clear(self) -> None:
        """Take the line away."""
        if self.active:
            self.active = False
            _line("")


FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LATE = 0.5
"""Seconds after which a step that still runs is shown."""


@contextmanager
def step(what: str, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show that a step is under way, once it takes long; on a terminal only.

    Yields a function that is told how much is done, for steps that know it.
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
        pause = LATE
        while not ended.wait(pause):
            pause, frame = 0.1, frame + 1
            count = f", {done:,} words" if done else ""
            seconds = time.monotonic() - start
            _line(f"{FRAMES[frame % len(FRAMES)]} {what}{count}, {seconds:.0f} s")
        if pause != LATE:
            _line("")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        ended.set()
        thread.join()
