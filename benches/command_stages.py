"""Measure the processor seconds of each stage of the command on the IMDB reviews.

It is the processor time of all threads, so other load on the machine matters little.
"""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from common import reviews

import fastdx
from fastdx.cli.formats import Choice, Opener
from fastdx.cli.formats.json import JsonLines

T = TypeVar("T")


def used(who: int = resource.RUSAGE_SELF) -> float:
    now = resource.getrusage(who)
    return now.ru_utime + now.ru_stime


def timed(what: str, work: Callable[[], T]) -> T:
    start = used()
    made = work()
    print(f"| {what} | {used() - start:.2f} |", flush=True)
    return made


def main() -> None:
    files = reviews()
    opener = Opener()
    forms = [JsonLines(Choice(("text",)), name) for name in files]

    def unpack() -> int:
        size = 0
        for name in files:
            with opener.open(name) as source:
                while data := source.read(1 << 20):
                    size += len(data)
        return size

    print("| stage | processor seconds |\n|---|---|")
    start = used(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "fastdx", "privatize", "--epsilon", "3", "-q"]
    subprocess.run(command, input=b"", check=True)
    print(f"| start, end | {used(resource.RUSAGE_CHILDREN) - start:.2f} |")
    timed("unpack (a part of the next)", unpack)
    batches = timed("read: unpack, decode, find the strings",
                    lambda: [(form, b) for form in forms for b in form.read(opener)])  # fmt: skip
    tem = fastdx.Tem(epsilon=3.0, exclude="offensive")

    def draw() -> list[Any]:
        return [form.draw(batch, tem) for form, batch in batches]

    drawn = timed("draw, every word for the first time", draw)
    timed("draw, the same again", draw)

    def write() -> None:
        for (form, batch), (new, _) in zip(batches, drawn, strict=True):
            form.write(batch, new, io.BytesIO())

    timed("write: quote, join, encode", write)
    words = sum(counts["words"] for _, counts in drawn)
    print(f"\n{words:,} words, `tem`, ε = 3.")


if __name__ == "__main__":
    main()
