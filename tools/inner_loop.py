"""Measures the seconds from a changed line to a test that passed.

    python tools/inner_loop.py [--warm]

Clones HEAD into target/inner-loop and builds it there once; `--warm` keeps what an earlier run
built. Then it changes a line and runs the commands of CONTRIBUTING.md. Prints a table. The working
tree stays as it is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "inner-loop"
TREE = FOLDER / "fastdx"
RUST = Path("src/mechanism/neighbor_response.rs")
PYTHON = Path("python/fastdx/selection.py")
VENV = FOLDER / "venv"


def clone(warm: bool) -> None:
    """Put HEAD into the folder, and keep what was built only if asked to."""
    shutil.rmtree(TREE if warm else FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(TREE)], check=True)


def environment() -> None:
    """Make an environment for `make quick` that sees the packages of this one."""
    venv.create(VENV, with_pip=True, clear=True)
    inner, outer = (
        sysconfig.get_path("purelib", "venv", {"base": str(base), "platbase": str(base)})
        for base in (VENV, sys.prefix)
    )
    (Path(inner) / "packages.pth").write_text(f"{outer}\n", "utf-8")
    for tool in ("maturin", "ruff"):
        (VENV / "bin" / tool).symlink_to(Path(sys.prefix) / "bin" / tool)
    (VENV / ".made").touch()


def seconds(command: list[str]) -> float:
    """Run a command in the clone, which must succeed, and return how long it took."""
    variables = {**os.environ, "CARGO_TARGET_DIR": str(FOLDER / "target")}
    start = time.monotonic()
    words = command
    if command[0] == "make":
        words = [*command, f"VENV={VENV}", "-o", f"{VENV}/.made"]
    elif command[0] == "python":
        words = [str(VENV / "bin" / "python"), *command[1:]]
    done = subprocess.run(
        words, cwd=TREE, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return time.monotonic() - start


def change(path: Path, lines: str) -> None:
    """Append lines, formatted as their language wants it, to a file of the clone."""
    with (TREE / path).open("a", encoding="utf-8") as file:
        file.write(lines)


def test_file(name: str) -> str:
    """The path of a Python test file, whatever folder it stands in."""
    (found,) = (TREE / "tests" / "python").rglob(name)
    return str(found.relative_to(TREE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warm", action="store_true", help="keep what an earlier run built")
    given = parser.parse_args()
    clone(given.warm)
    environment()
    build = ["make", "quick"]
    cargo = ["cargo", "test", "--locked", "--profile", "quick", "--lib", "neighbor_response"]
    pytest = ["python", "-m", "pytest", test_file("test_registry.py"), "-k", "copies"]
    rows: list[tuple[str, list[str], float]] = []

    def measure(task: str, command: list[str]) -> None:
        rows.append((task, command, seconds(command)))

    first = "build once: the extension", "build once: the core's tests"
    if given.warm:
        seconds(build), seconds(cargo)
    else:
        measure(first[0], build)
        measure(first[1], cargo)
    change(PYTHON, "\n\nCHANGED = 1\n")
    measure("change a line of Python, run one test of every mechanism", pytest)
    change(RUST, "\n/// Changed.\npub const CHANGED: u32 = 1;\n")
    measure("change a line of Rust, run the tests of its file", cargo)
    measure("build the extension with that line", build)
    measure("check the format, names and imports", ["make", "format", "lint-python"])
    print("| | command | seconds |\n|---|---|---|")
    for task, command, took in rows:
        digits = 0 if took >= 10 else 1
        print(f"| {task} | `{' '.join(command)}` | {took:.{digits}f} |")


if __name__ == "__main__":
    main()
