"""Policies that documents, help texts and docstrings show: a reader takes them for advice.

Tests make every one of them and fail for one that protects hardly anything: see
`tests/python/repository/test_examples.py`, and conftest.py for examples as they run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

MUCH = 0.2
"""The largest mean probability that a common word comes back which needs no explanation."""
NEAR = 4
"""Lines before and after an example that may explain it."""
LINE = re.compile(
    r"(?:^|[\s`\"'(|$/])(?:python -m )?fastdx[ -](privatize|serve|evaluate)(?= )([^\n`]*)"
)
END = re.compile(r" [|<>#] ?|\s{2,}#|\"\)|-->|;|\.\.\.")
"""Where a command ends within its line."""
FILES = ("--embedding", "--graph", "--policy", "--config", "--cover-file", "--help")


def commands(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Commands that a text shows: the line, the command, its words; continued lines joined."""
    joined = re.sub(r"\\{1,2}\n\s*", lambda m: " " + "\0" * m.group().count("\n"), text)
    at = 1
    for line in joined.split("\n"):
        for command, rest in LINE.findall(line):
            shown = END.split(rest.replace("\0", ""))[0]
            try:
                words = shlex.split(shown, comments=True)
            except ValueError:
                words = shown.split()
            if not any(word.split("=")[0] in FILES for word in words):
                yield at, command, words
        at += 1 + line.count("\0")


def said_beside(lines: list[str], at: int) -> bool:
    """Whether the lines near a line (counted from 1) say that words come back."""
    return "come back" in " ".join(lines[max(0, at - 1 - NEAR) : at + NEAR])
