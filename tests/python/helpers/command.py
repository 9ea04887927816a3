"""The command `fastdx` and other programs, run in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias


class Said(NamedTuple):
    """Both outputs of a command."""

    out: str
    err: str


Command: TypeAlias = Callable[..., Said]
"""The fixture `command`."""
FASTDX = [sys.executable, "-m", "fastdx"]


def _run(
    command: list[str], stdin: str | bytes, code: int | None, **options: object
) -> subprocess.CompletedProcess[str]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(command, input=data, capture_output=True, check=False, **options)  # type: ignore[call-overload]
    told = done.stderr.decode()
    assert code is None or done.returncode == code, told
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), told)


def run(
    *args: object, stdin: str | bytes = b"", code: int | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command; its exit code, which is checked if one is given, and what it says."""
    return _run([*FASTDX, *map(str, args)], stdin, code, cwd=folder)


def fails(message: str, *args: object, stdin: str | bytes = b"") -> str:
    """Run the command, which refuses: all that it says, and among it the message."""
    done = run(*args, stdin=stdin, code=1)
    assert message in done.stderr and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def python(
    program: str, *args: object, stdin: bytes = b"", code: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter."""
    command = [sys.executable, "-c", program, *map(str, args)]
    return _run(command, stdin, code, env={**os.environ, **environment})


def peak(program: str, *args: object) -> tuple[float, str]:
    """The most memory that a program takes, in MB, and what it says on standard error."""
    # The peak since the program began: ru_maxrss counts its parent's too, from before.
    program += (
        "\nlines = dict(line.split(':', 1) for line in open('/proc/self/status'))"
        "\nprint(lines['VmHWM'].split()[0])"
    )
    done = python(program, *args)
    return int(done.stdout.split()[-1]) / 1024, done.stderr


MAIN = """
import sys; from fastdx.cli import main
try: main(sys.argv[1:])
except SystemExit: pass
"""
"""The command, whose exit is not the end: memory is asked for after it."""
