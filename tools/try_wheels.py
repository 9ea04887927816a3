"""Installs a wheel in an empty environment, privatises a sentence and tests the laws.

    python tools/try_wheels.py target/wheels [PYTHON ...] [--laws NAME ...]

Each interpreter (by default that of this script) gets its own environment outside of this copy of
the repository, so the tests run on the installed package. The script needs only the standard
library, so it runs in a root file system with Python and nothing else:

    debootstrap --variant=minbase --include=python3-venv,ca-certificates trixie root
    mount --bind . root/mnt && chroot root python3 /mnt/tools/try_wheels.py /mnt/target/wheels
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAWS = ["laws", "bound", "every_law", "finite_law", "covers", "vickrey", "hyperbolic", "randomness"]
NEEDED = ["pytest", "hypothesis", "scipy", "scikit-learn", "pyarrow", "xxhash"]
SENTENCE = """
from fastdx import Tem
tem = Tem(epsilon=6.0, cover=40, exclude="offensive")
print(tem.privatize("I would like a cup of coffee, please."))
"""


def matching(folder: Path) -> Path:
    """Return the wheel for this machine and its C library."""
    libc = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    found = sorted(
        folder.glob(f"*{libc}*{platform.machine()}.whl"), key=lambda p: p.stat().st_mtime
    )
    if not found:
        raise SystemExit(f"{folder} has no wheel for {libc} on {platform.machine()}")
    # It is installed from another folder.
    return found[-1].resolve()


def attempt(python: str, wheel: Path, laws: list[str]) -> bool:
    """Return whether all checks pass with one interpreter."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
        place = "Scripts" if os.name == "nt" else "bin"
        inside = str(folder / "venv" / place / "python")

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [inside, *command],
                cwd=folder,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )

        version = run("-c", "import sys; print(sys.version.split()[0])").stdout.strip()
        title = f"Python {version}, {platform.machine()}, {wheel.name}"
        start = time.monotonic()
        installed = run("-m", "pip", "install", "--quiet", "--only-binary=:all:", str(wheel))
        said = run("-c", SENTENCE)
        seconds = time.monotonic() - start
        if installed.returncode or said.returncode:
            print(f"{title}: FAILED\n{installed.stdout}{said.stdout}")
            return False
        print(f"{title}: a private sentence {seconds:.1f} s after pip install began", flush=True)
        needed = run("-m", "pip", "install", "--quiet", "--only-binary=:all:", *NEEDED)
        if needed.returncode:
            print(f"{title}: NOT TESTED, what the tests need cannot be had\n{needed.stdout}")
            return False
        tests = folder / "tests" / "python"
        shutil.copytree(
            ROOT / "tests" / "python", tests, ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / "pytest.ini").write_text("[pytest]\npythonpath = . tests/python\n", "utf-8")
        tested = run(
            "-m",
            "pytest",
            "-q",
            *(str(path) for name in laws for path in tests.rglob(f"test_{name}.py")),
        )
        print(f"{title}: {tested.stdout.strip().splitlines()[-1]}", flush=True)
        if tested.returncode:
            print(tested.stdout)
        return tested.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the wheels are")
    parser.add_argument("python", nargs="*", default=[sys.executable], help="interpreters")
    parser.add_argument("--laws", nargs="+", default=LAWS, choices=LAWS, help="of tests/python/")
    given = parser.parse_args()
    wheel = matching(given.folder)
    return int(not all([attempt(python, wheel, given.laws) for python in given.python]))


if __name__ == "__main__":
    sys.exit(main())
