"""Draw a batch while the next one is read and the last one is written."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from fastdx.cli.formats.base import Batch, Draw

WAIT_SECONDS = 10.0
"""Seconds that an ended run waits for its threads. A thread that waits for input, or for a reader
of its output, cannot be woken. It holds no lock and ends with the process."""


class _Worker:
    """A thread that does what it is asked, in order, and ends with the process."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._work, daemon=True).start()

    def ask(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._asked.put((future, work))
        return future

    def end(self) -> None:
        self._asked.put(None)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            future, work = asked
            try:
                future.set_result(work())
            except BaseException as e:
                future.set_exception(e)
            del asked, future, work  # frees a batch while this thread waits for the next one


def _result(future: Future[Any], written: Future[Any] | None = None) -> Any:
    """Wait for a result; raise what the last write has raised meanwhile."""
    while not future.done():
        # On some platforms a wait without a time limit does not see signals.
        wait([future], 0.1)
        if written is not None and written.done():
            written.result()
    return future.result()


def run(
    batches: Generator[Batch, None, None], draw: Draw, write: Callable[[Batch], object]
) -> None:
    """Read batches on one thread, draw them on this one, write them on a third, all in order.

    This thread draws, because only the main thread sees Ctrl-C. The first error of any stage ends
    all stages and is raised; nothing is written after it.
    """
    reader, writer = _Worker(), _Worker()
    written: Future[Any] = writer.ask(lambda: None)
    try:
        ahead = reader.ask(partial(next, batches, None))
        while (batch := _result(ahead, written)) is not None:
            ahead = reader.ask(partial(next, batches, None))
            batch.draw(draw)
            _result(written)
            written = writer.ask(partial(write, batch))
            del batch
        _result(written)
    finally:
        # The writing thread must stop before the caller closes the file.
        wait([written], WAIT_SECONDS)
        wait([reader.ask(batches.close)], 1.0)
        reader.end()
        writer.end()
