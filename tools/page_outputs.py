"""Writes beneath the examples of pages what they print, so that no output is typed by hand.

    python tools/page_outputs.py docs/PAGE.md …

A page of docs/ shows its examples as a reader pastes them: blocks of Python, run in order, and
beneath a block of text what it prints. An output that is marked as one draw is not compared, and
checks stand in comments, `<!-- check` to `-->`; conftest.py runs them all. Here outputs that hold,
also those with "...", stay as they are; random ones are drawn again.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```(\w+)\n(?P<code>.*?)^```$|^<!-- check\n(?P<check>.*?)^-->$", re.M | re.S)
DRAW = re.compile(r"\bone draw\b", re.I)
CHECKER, HOW = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """Code, the line before it, and the output that the page shows, with its place in the page."""

    line: int
    language: str
    code: str
    output: str | None = None
    place: tuple[int, int] = (0, 0)
    random: bool = False

    def holds(self, printed: str) -> bool:
        return self.output is None or CHECKER.check_output(self.output, printed, HOW)


def examples(page: str, languages: Collection[str] = ("python",)) -> list[Block]:
    found: list[Block] = []
    end = 0
    for match in BLOCK.finditer(page):
        example = match[1] in languages and ">>> " not in match["code"]
        if example or match["check"] is not None:
            line = page.count("\n", 0, match.start()) + 1
            found.append(Block(line, match[1] or "python", match["code"] or match["check"]))
        elif match[1] == "text" and end:
            random = DRAW.search(page[end : match.start()]) is not None
            place = match.span("code")
            found[-1] = found[-1]._replace(output=match["code"], place=place, random=random)
        end = match.end() if example else 0
    return found


def outputs(blocks: list[Block], path: Path) -> Iterator[tuple[Block, str]]:
    """Run blocks in order in one namespace, and yield what each prints."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * block.line + block.code, str(path), "exec"), names)
        yield block, out.getvalue()


def run(blocks: list[Block], path: Path) -> None:
    for block, printed in outputs(blocks, path):
        if not block.random and not block.holds(printed):
            raise AssertionError(f"{path}:{block.line} printed\n{printed}\nnot\n{block.output}")


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        page = path.read_text("utf-8")
        for block, printed in reversed(list(outputs(examples(page), path))):
            if not block.holds(printed):
                start, end = block.place
                page = f"{page[:start]}{printed}{page[end:]}"
        path.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
