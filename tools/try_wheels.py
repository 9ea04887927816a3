"""Installs a wheel in an empty environment, privatises a sentence and tests the laws.

    python tools/try_wheels.py target/wheels [PYTHON ...]

Each interpreter (by default that of this script) gets its own environment outside of this copy of
the repository, so the tests run on the installed package. A wheel of the service is installed too.
The script needs only the standard library, so it runs in a root file system with Python alone:

    debootstrap --variant=minbase --include=python3-venv,ca-certificates trixie root
    mount --bind . root/mnt && chroot root python3 /mnt/tools/try_wheels.py /mnt/target/wheels
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAWS = ["laws", "bound", "every_law", "finite_law", "covers", "vickrey", "hyperbolic", "randomness"]
NEEDED = ["pytest", "hypothesis", "scipy", "scikit-learn", "pyarrow", "xxhash"]
SENTENCE = "import fastdx; print(fastdx.Tem(epsilon=3.0).privatize('A cup of coffee, please.'))"


def attempt(python: str, folder: Path, wheels: Path) -> None:
    """Install the newest wheel for this machine and its C library, and test it."""
    libc = {"glibc": "manylinux"}.get(platform.libc_ver()[0], "musllinux")
    kind = f"*{libc}*{platform.machine()}" if sys.platform == "linux" else ""
    found = sorted(wheels.glob(f"fastdx-*{kind}.whl"), key=lambda path: path.stat().st_mtime)
    if not found:
        sys.exit(f"{wheels} has no wheel for this machine")
    inside = str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def run(*words: str) -> None:
        subprocess.run([inside, *words], cwd=folder, env=environment, check=True)

    def install(*packages: str) -> None:
        run("-m", "pip", "install", "--quiet", "--only-binary=:all:", *packages)

    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    install(str(found[-1]))
    run("-c", SENTENCE)
    if any(wheels.glob("fastdx_serve-*.whl")):
        install("--find-links", str(wheels), "fastdx[serve]")
        run("-m", "fastdx", "serve", "--check")
    install(*NEEDED)
    tests = folder / "tests" / "python"
    shutil.copytree(ROOT / "tests" / "python", tests)
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = . tests/python\n", "utf-8")
    laws = [str(path) for name in LAWS for path in tests.rglob(f"test_{name}.py")]
    run("-m", "pytest", "-q", *laws)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/try_wheels.py FOLDER [PYTHON ...]")
    for python in sys.argv[2:] or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            attempt(python, Path(folder), Path(sys.argv[1]).resolve())


if __name__ == "__main__":
    main()
