"""Does everything of a release but publish it, in a clean clone of HEAD.

    python tools/release_check.py [--only STEP ...] [--list]

The clone is target/release-check/fastdx, the logs stand beside it. A step that fails does not stop
the others. At the end stands what was not checked here. All steps together take hours.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import project

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "release-check"
CLONE = FOLDER / "fastdx"
DIST = CLONE / "target" / "wheels"

ELSEWHERE = """\
wheels for macOS and Windows: .github/workflows/release.yml builds and tests them
aarch64 on a real machine, musl on a real system: emulator and build alone
Python versions that are not installed here: tools/try_wheels.py DIST PYTHON tests one
a wheel for free-threaded Python: none is built (docs/releasing.md)
the workflows themselves, which run on GitHub alone
publishing: whether the names are free, trusted publishing, attestations
figures in the documents: make figures, make papers
how the site looks"""


class NotHere(Exception):
    """A step needs something that this machine does not have."""


def run(*command: str | Path, cwd: Path = CLONE, **variables: str) -> None:
    """Run a command in the clone; its output goes to the step's log."""
    print("$", *command, flush=True)
    kept = {k: v for k, v in os.environ.items() if k not in ("CARGO_TARGET_DIR", "PYTHONPATH")}
    subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**kept, **variables}, check=True,
        stdout=sys.stdout, stderr=subprocess.STDOUT,
    )  # fmt: skip


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise NotHere(f"{program} is not installed")


def statements() -> None:
    """Version, changelog, release notes, citation and address agree."""
    if found := project.faults(CLONE):
        raise RuntimeError("; ".join(found))


def checks() -> None:
    """All checks and tests that must pass before any change lands."""
    run(CLONE / ".ci" / "run")


def bounds() -> None:
    """The tests of all claims of ε, with twenty times the draws."""
    run("make", "test-bounds")


def fuzz() -> None:
    """The readers of files, fuzzed."""
    run("make", "fuzz")


def wheels() -> None:
    """The source distribution and the wheels for Linux, each looked at."""
    run("make", "wheels")


def trial() -> None:
    """This machine's wheel, alone in an environment, and the tests of laws with it."""
    run("make", "try-wheels")


def service() -> None:
    """Both wheels installed together from their files, and the program checks a policy."""
    run("make", "service-wheel")
    where = FOLDER / "venv"
    run(sys.executable, "-m", "venv", "--clear", where)
    pip = [where / "bin" / "pip", "install", "--quiet", "--find-links", DIST]
    run(*pip, "--only-binary=:all:", "fastdx[serve]")
    run(where / "bin" / "fastdx", "serve", "--check")


def offline() -> None:
    """The source distribution builds from vendored crates, without the network."""
    (source,) = DIST.glob("fastdx-*.tar.gz")
    folder = FOLDER / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(source, folder, filter="data")
    (tree,) = folder.iterdir()
    # Its Cargo.lock names the crates of the whole workspace; cargo removes those of other members.
    lock = tree / "Cargo.lock"
    before = _crates(lock)
    config = subprocess.run(
        ["cargo", "vendor", "--quiet"], cwd=tree, check=True, text=True, stdout=subprocess.PIPE
    ).stdout
    if new := _crates(lock) - before:
        raise RuntimeError(f"the source distribution builds with other crates: {sorted(new)}")
    (tree / ".cargo").mkdir()
    (tree / ".cargo" / "config.toml").write_text(config, "utf-8")
    maturin = CLONE / ".venv-release" / "bin"
    path = f"{maturin}{os.pathsep}{os.environ['PATH']}"
    run(
        "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, tree,
        cwd=folder, PATH=path, CARGO_NET_OFFLINE="true",
    )  # fmt: skip


def _crates(lock: Path) -> set[tuple[str, str]]:
    """Names and versions in a lock file."""
    import tomllib  # of Python 3.11, and others may read this file

    return {
        (crate["name"], crate["version"])
        for crate in tomllib.loads(lock.read_text("utf-8"))["package"]
    }


def oldest() -> None:
    """The oldest Rust that Cargo.toml promises."""
    run("make", "msrv")


def others() -> None:
    """Checks that it compiles for Windows and macOS."""
    run("make", "platforms", "check-platforms")


def emulated() -> None:
    """The core's tests on aarch64, in an emulator."""
    needs("qemu-aarch64-static", "aarch64-linux-gnu-gcc")
    run("make", "test-aarch64")


STEPS: dict[str, Callable[[], None]] = {
    step.__name__: step
    for step in (statements, checks, bounds, fuzz, wheels, trial, service, offline, oldest,
                 others, emulated)
}  # fmt: skip


def clone() -> str:
    """Clone HEAD, and return its commit."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, CLONE], check=True)
    git = ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"]
    if subprocess.run(git, capture_output=True, text=True, check=True).stdout:
        print("Changes that are not committed are not checked.")
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=CLONE, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return found.stdout.strip()


def attempt(name: str) -> str:
    """Run a step in a process of its own, with its output in a log: what to say about it."""
    log = FOLDER / f"{name}.log"
    start = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, __file__, "--inner", name], stdout=file, stderr=file, check=False
        )
    took = f"{time.monotonic() - start:,.0f} s"
    last = (log.read_text("utf-8").strip().splitlines() or [""])[-1]
    if done.returncode == 2:
        return f"not run: {last}"
    return f"passed in {took}" if done.returncode == 0 else f"FAILED after {took}: {last}"


def inner(name: str) -> int:
    try:
        STEPS[name]()
    except NotHere as reason:
        print(reason)
        return 2
    except (RuntimeError, OSError, subprocess.CalledProcessError, ValueError) as error:
        print(error)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", help="these steps")
    parser.add_argument("--list", action="store_true", help="print the steps")
    parser.add_argument("--inner", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inner:
        return inner(given.inner)
    if given.list:
        for name, step in STEPS.items():
            print(f"{name:11} {step.__doc__}")
        return 0
    commit = clone()
    print(f"fastdx {project.field('version')}, commit {commit}, {platform.platform()}")
    said = {}
    for name in given.only or STEPS:
        said[name] = attempt(name)
        print(f"{name:11} {said[name]}", flush=True)
    print("\nNot checked here:")
    for name, step in STEPS.items():
        if not said.get(name, "").startswith("passed"):
            purpose = (step.__doc__ or "").rstrip(".")
            print(f"- {name}: {purpose} ({said.get(name, 'not asked for')})")
    for line in ELSEWHERE.splitlines():
        print(f"- {line}")
    if not project.field("repository", CLONE):
        print("\nTo fill in: the project's address, `repository` in Cargo.toml")
    if DIST.is_dir() and any(DIST.iterdir()):
        print(f"\nThe files are in {DIST}. Nothing was published.")
    return int(any(text.startswith("FAILED") for text in said.values()))


if __name__ == "__main__":
    sys.exit(main())
