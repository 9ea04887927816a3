"""Read, draw and write at the same time, with a few batches between the stages."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from fastdx.cli.formats.base import Batch, Draw

WAITING_BATCHES = 1
"""The number of batches that wait before drawing and before writing; it bounds the memory."""
WAIT_SECONDS = 10.0
"""Seconds that an ended run waits for its threads. A thread that waits for input, or for a reader
of its output, cannot be woken. It holds no lock and ends with the process."""


class _Stopped(Exception):
    """Another stage has ended the run."""


class _Channel:
    """A bounded queue of batches that can be shut."""

    def __init__(self) -> None:
        self._items: queue.Queue[Batch | None] = queue.Queue(WAITING_BATCHES)
        self._shut = threading.Event()

    def put(self, item: Batch | None) -> None:
        while not self._shut.is_set():
            try:
                return self._items.put(item, timeout=0.1)
            except queue.Full:
                pass
        raise _Stopped

    def get(self) -> Batch | None:
        while not self._shut.is_set():
            try:
                return self._items.get(timeout=0.1)
            except queue.Empty:
                pass
        raise _Stopped

    def shut(self) -> None:
        self._shut.set()


def run(batches: Iterator[Batch], draw: Draw, write: Callable[[Batch], object]) -> None:
    """Read batches on one thread, draw them on this one, write them on a third, all in order.

    This thread draws, because only the main thread sees Ctrl-C. The first error of any stage ends
    all stages and is raised; nothing is written after it.
    """
    read, drawn = _Channel(), _Channel()
    failed: list[BaseException] = []

    def stage(work: Callable[[], None]) -> threading.Thread:
        def body() -> None:
            try:
                work()
            except _Stopped:
                pass
            except BaseException as e:
                failed.append(e)
                read.shut()
                drawn.shut()

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread

    def reading() -> None:
        try:
            for batch in batches:
                read.put(batch)
                del batch
            read.put(None)
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    def writing() -> None:
        while (batch := drawn.get()) is not None:
            write(batch)
            del batch  # frees its memory while this thread waits for the next one

    threads = [stage(reading), stage(writing)]
    try:
        while (batch := read.get()) is not None:
            batch.draw(draw)
            drawn.put(batch)
            del batch
        drawn.put(None)
        # On some platforms a join without a time limit does not see signals.
        while threads[1].is_alive():
            threads[1].join(0.1)
    except _Stopped:
        pass
    finally:
        read.shut()
        drawn.shut()
        if failed or threads[1].is_alive():
            # The writing thread must stop before the caller closes the file.
            threads[1].join(WAIT_SECONDS)
            threads[0].join(1.0)
    if failed:
        raise failed[0]
