"""The command `fastdx`, run in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FASTDX = [sys.executable, "-m", "fastdx"]


def run(*args: str | Path, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run the command with this standard input; its exit code, output and errors as text."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run([*FASTDX, *map(str, args)], input=data, capture_output=True, check=False)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )
