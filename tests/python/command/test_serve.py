"""`fastdx serve`: how it finds the program of the service, and what it hands on."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from fastdx.cli import serve
from helpers.command import Command

ECHO = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv))\nsys.exit(7)\n"


def program(folder: Path) -> str:
    """Put a program of the service's name into a folder: it prints its arguments."""
    folder.mkdir(exist_ok=True)
    path = folder / serve.PROGRAM
    path.write_text(ECHO)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is installed: folders of programs are below the one that is returned."""
    for name in ("scripts", "user", "interpreter", "path"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "interpreter" / "python"))
    places = {"posix_prefix": "scripts", "posix_user": "user"}

    def get_path(name: str, scheme: str = "posix_prefix") -> str:
        assert name == "scripts"
        return str(tmp_path / places[scheme])

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


@pytest.mark.parametrize(
    "options",
    [[], ["--epsilon", "3"], ["--help"], ["--version"], ["-h"], ["a", "--", "--config", "b c"]],
)
def test_all_options_are_the_programs(tmp_path: Path, options: list[str]) -> None:
    found = program(tmp_path / "bin")
    code = "import sys; from fastdx.cli import main; sys.exit(main())"
    # Without what may be installed beside this interpreter.
    code = f"import sysconfig; sysconfig.get_path = lambda *_: {str(tmp_path)!r}; {code}"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", *options],
        check=False,
        env={**os.environ, "PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
    )
    # An interpreter beside which the program is installed runs that one.
    if not (Path(sys.executable).parent / serve.PROGRAM).exists():
        assert json.loads(done.stdout) == [found, *options], done.stderr
        assert done.returncode == 7
