"""`make help` describes every target, and documents name targets that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from helpers import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.M))
FILES: list[Path] = [
    *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / ".ci" / "run", ROOT / "Cargo.toml",
    ROOT / ".pre-commit-config.yaml", *ROOT.glob(".github/**/*.yml"), *ROOT.glob(".github/*.md"),
    *(p for d in ("python", "tools", "benches", "tests") for p in (ROOT / d).rglob("*.py")),
]  # fmt: skip


def test_help_describes_every_target() -> None:
    done = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    described = dict(re.findall(r"^  ([\w-]+) +(\S.*)$", done, re.M))
    assert set(described) == TARGETS and len(TARGETS) > 40
    assert all(len(text) < 100 for text in described.values())
    headings = re.findall(r"^(\w[\w ]+)$", done, re.M)
    assert headings == ["Work on it", "Tests", "Checks", "Measurements", "Release"]


def named(text: str) -> set[str]:
    """The targets that a text names: in `make A B`, and behind "run: make" or "entry: make"."""
    found = re.findall(r"`make ([^`\n…]+)[`…]|(?:run|entry): make (.+)", text)
    words = [word for pair in found for word in " ".join(pair).split()]
    return {word for word in words if re.fullmatch(r"[a-z][a-z0-9-]+", word)}


def test_targets_are_found() -> None:
    shown = "`make lint types`, `make profile ROW=x`, make a wish\nrun: make deny"
    assert named(shown) == {"lint", "types", "profile", "deny"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_targets_that_exist(path: Path) -> None:
    others = named(path.read_text("utf-8")) - TARGETS
    assert all(re.match(r"(paper|wheel)-", name) for name in others), others
