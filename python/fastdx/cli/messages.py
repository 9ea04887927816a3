"""Messages and progress of the command; they show content only with ``--show-text``."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias


class CommandError(Exception):
    """An error that ends the command; its message has places and counts, but no content.

    `shown` is the content in question, which the command prints only with ``--show-text``.
    """

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(message)
        self.shown = shown


Progress: TypeAlias = Callable[[int], object]
"""A function that is called with the number of bytes of input just read."""


CLEAR = "\r\x1b[K"
"""Removes the line of a terminal."""


def tell(line: str, *, quiet: bool = False) -> None:
    """Print a line on the standard error, unless quiet; it replaces a line of progress."""
    if not quiet:
        print(f"{CLEAR if sys.stderr.isatty() else ''}fastdx: {line}", file=sys.stderr)


def width() -> int:
    """Return the columns of the terminal, as `shutil.get_terminal_size` finds them."""
    with suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def _line(text: str) -> None:
    """Show a line in place of the previous one."""
    print(f"{CLEAR}{text}", end="", file=sys.stderr, flush=True)


def _left(seconds: float) -> str:
    """Return a phrase about the time left."""
    left = round(max(seconds, 0))
    return f", {left // 60} min {left % 60} s left"


FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LATE_SECONDS = 0.5
"""Seconds after which a running step is shown."""


@contextmanager
def step(
    what: str = "", total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[..., None]]:
    """Show that a step runs, if it takes long; on a terminal only.

    Yields a function that takes the number of words done, of `total` ones; or the next line and the
    share of the work before it, None if that is not known.
    """
    start = begun = time.monotonic()
    line, whole = what, 0.0

    def progress(done: int | str, before: float | None = None) -> None:
        nonlocal line, whole, begun
        if isinstance(done, str):
            line, share = done, before or 0.0
            begun = time.monotonic() if before is None else begun
        else:
            line, share = f"{what}, {done:,} words", done / total if total else 0.0
        whole = (time.monotonic() - begun) / share if share else 0.0

    if quiet or not sys.stderr.isatty():
        yield progress
        return
    ended = threading.Event()

    def show() -> None:
        frame, pause = 0, LATE_SECONDS
        while not ended.wait(pause):
            pause, frame = 0.1, frame + 1
            now = time.monotonic()
            time_said = f", {now - start:.0f} s{_left(begun + whole - now) if whole else ''}"
            shown = line[: width() - len(time_said) - 3]
            _line(f"{FRAMES[frame % len(FRAMES)]} {shown}{time_said}")
        if pause != LATE_SECONDS:
            _line("")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        ended.set()
        thread.join()
