"""Tests share code through `helpers`: no test file imports from another one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from helpers import ROOT

TESTS = sorted((ROOT / "tests" / "python").rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The first parts of the names of all modules that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    sources = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | sources}


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_no_test_imports_another(path: Path) -> None:
    others = {other.stem for other in TESTS if "helpers" not in other.parts}
    assert not imported(path) & others


def test_names_of_test_files_are_unique() -> None:
    """pytest imports test files by their bare names, whatever folder they stand in."""
    names = [path.name for path in TESTS if path.name.startswith("test_")]
    assert len(names) == len(set(names)) > 50
