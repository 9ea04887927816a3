"""`fastdx serve`: how it finds the program of the service, and what it hands on."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from fastdx.cli import main, serve
from helpers.command import Command


def program(folder: Path) -> str:
    """Put a program of the service's name into a folder: nothing runs it."""
    path = folder / serve.PROGRAM
    path.write_text("")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is installed: folders of programs are below the one that is returned."""
    for name in ("scripts", "user", "interpreter", "path"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "interpreter" / "python"))
    places = {"": "scripts", f"{os.name}_user": "user"}
    get_path = lambda name, scheme="": str(tmp_path / places[scheme])  # noqa: E731
    monkeypatch.setattr(sysconfig, "get_path", get_path)
    return tmp_path


def test_where_it_is_found(nowhere: Path) -> None:
    assert serve._program() is None
    # Each place goes before those that were there.
    for name in ("path", "interpreter", "scripts"):
        assert serve._program() != (found := program(nowhere / name))
        assert serve._program() == found
    for name in ("interpreter", "scripts"):
        (nowhere / name / serve.PROGRAM).unlink()
    found = program(nowhere / "user")
    assert serve._program() == found


def test_absent(nowhere: Path, command: Command) -> None:
    said = command("serve", "--epsilon", "3", code=1).err
    assert "fastdx-serve" in said and "pip install 'fastdx[serve]'" in said


@pytest.mark.parametrize("given", ["", "--epsilon 3", "--help", "-h", "a -- --config b"])
def test_all_options_are_the_programs(
    nowhere: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(os, "execv", lambda *words: started.extend(words))
    found = program(nowhere / "scripts")
    assert main(["serve", *given.split()]) == 0
    assert started == [found, [found, *given.split()]]
