"""No command and no file of policies that a document or a help text shows protects hardly anything.

Readers take them as advice. Examples in Python are watched as they run: conftest.py at the root.
"""

from __future__ import annotations

import argparse
import re
import shlex
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fastdx import Mechanism
from fastdx.cli import COMMANDS, parser, policies
from fastdx.cli.messages import CommandError
from fastdx.cli.options import MechanismOptions
from helpers import ROOT

PLACES = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*"),
        *ROOT.glob("python/fastdx/**/*.py"),
        *(ROOT / "service").glob("*.*"),
        *(ROOT / "service" / "src").glob("*"),
        ROOT / "Makefile",
        ROOT / "service" / "Containerfile",
    }
)

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


def policy_of(command: str, words: list[str]) -> Mechanism | None:
    """The mechanism that a shown command makes, on the built-in words."""
    if command == "serve":
        words = ["--mechanism", "tem", *(w for pair in pairwise(words) if pair[0] == "--epsilon"
                                         for w in pair)]  # fmt: skip
        command = "privatize"
    try:
        args, _ = parser(command).parse_known_args([command, *words])
    except SystemExit:
        return None
    args.quiet = True
    if isinstance(args, argparse.Namespace) and args.mechanism in ("hyperbolic", "bag"):
        return None
    return MechanismOptions.of(args).make()


@pytest.mark.parametrize("place", PLACES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_that_are_shown(place: Path) -> None:
    if place.is_dir() or place.suffix in (".svg", ".html"):
        return
    text = place.read_text("utf-8")
    lines = text.split("\n")
    for at, command, words in commands(text):
        mechanism = policy_of(command, words)
        if mechanism is not None and (warning := mechanism.unchanged.warning):
            # The lines near it say so.
            assert "come back" in " ".join(lines[max(0, at - 5) : at + 4]), (
                f"{place}:{at}: {warning}"
            )


def test_commands_are_found() -> None:
    shown = (
        "x\n  fastdx privatize --epsilon 6 \\\n    --cover 40 < a.txt\n$ fastdx serve --epsilon 3"
    )
    assert list(commands(shown)) == [
        (2, "privatize", ["--epsilon", "6", "--cover", "40"]),
        (4, "serve", ["--epsilon", "3"]),
    ]
    found = policy_of("privatize", ["--mechanism", "tem", "--epsilon", "6"])
    assert found is not None and found.unchanged.mean > 0.5
    count = sum(1 for place in PLACES if place.suffix in (".md", ".py")
                for _ in commands(place.read_text("utf-8")))  # fmt: skip
    assert count > 20 and "privatize" in COMMANDS


@pytest.mark.parametrize("place", PLACES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_of_policies(place: Path, tmp_path: Path) -> None:
    if place.suffix not in (".md", ".toml"):
        return
    text = place.read_text("utf-8")
    blocks = (
        [text] if place.suffix == ".toml" else re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    )
    for block in blocks:
        if "[policies." not in block:
            continue
        file = tmp_path / "policies.toml"
        # Skips blocks whose files are not there. The service's own tables are not about mechanisms.
        shown = re.sub(r"^(index|warm|exclude) = .*\n", "", textwrap.dedent(block), flags=re.M)
        file.write_text(shown, "utf-8")
        try:
            made = policies.mechanisms(str(file))
        except CommandError as e:
            assert "neither default nor policies" in str(e), e
            continue
        for name, mechanism in made.items():
            warning = mechanism.unchanged.warning
            assert warning is None or "come back" in text, f"{place}, {name}: {warning}"
