"""Messages and progress of the command; they show content only with ``--show-text``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size


class CommandError(Exception):
    """An error that ends the command; its message has places and counts, but no content.

    `shown` is the content in question, which the command prints only with ``--show-text``.
    """

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(message)
        self.shown = shown


CLEAR = "\r\x1b[K"
"""Removes the line of a terminal."""


def tell(line: str, *, quiet: bool = False) -> None:
    """Print a line on the standard error, unless quiet; it replaces a line of progress."""
    if not quiet:
        print(f"{CLEAR if sys.stderr.isatty() else ''}fastdx: {line}", file=sys.stderr)


@contextmanager
def step(
    what: str = "", total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[..., None]]:
    """Show a line while a step runs; on a terminal only.

    Yields a function that takes the number of words done, of `total` ones; or the next line and the
    share of the work before it, None if that is not known.
    """
    begun, last = time.monotonic(), ""

    def progress(done: int | str, before: float | None = None) -> None:
        nonlocal begun, last
        if isinstance(done, str):
            line, share = done, before
            begun = time.monotonic() if before is None else begun
        else:
            line, share = f"{what}, {done:,} words", done / total if total else None
        left = ""
        if share:
            seconds = round((time.monotonic() - begun) * (1 / share - 1))
            left = f", {seconds // 60} min {seconds % 60} s left"
        line = line[: get_terminal_size().columns - len(left) - 1] + left
        if line != last and not quiet and sys.stderr.isatty():
            print(f"{CLEAR}{line}", end="", file=sys.stderr, flush=True)
            last = line

    progress(what)
    try:
        yield progress
    finally:
        progress("")
