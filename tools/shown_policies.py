"""Finds the policies that documents, help texts and docstrings show; readers take them as advice.

Tests make every one of them, and fail for a policy that protects hardly anything. See
`tests/python/repository/test_examples.py`, and conftest.py for running examples.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

MUCH = 0.2
"""The largest mean probability of an unchanged common word that needs no explanation."""
NEAR = 4
"""The number of lines before and after an example in which an explanation is sought."""
LINE = re.compile(
    r"(?:^|[\s`\"'(|$/])(?:python -m )?fastdx[ -](privatize|serve|evaluate)(?= )([^\n`]*)"
)
END = re.compile(r" [|<>#] ?|\s{2,}#|\"\)|-->|;|\.\.\.")
"""The ends of a command in its line."""
FILES = ("--embedding", "--graph", "--policy", "--config", "--cover-file", "--help")


def commands(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the line, the command and its words of each shown command; join continued lines."""
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
    """Return whether the lines near a line (from 1) say that words come back unchanged."""
    return "come back" in " ".join(lines[max(0, at - 1 - NEAR) : at + NEAR])
