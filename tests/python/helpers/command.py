"""The command `fastdx` in this process, and other programs in processes of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple, TypeAlias

from fastdx.cli import main


class Said(NamedTuple):
    """Both outputs of a command."""

    out: str
    err: str


Command: TypeAlias = Callable[..., Said]
"""The fixture `command`."""
FASTDX = [sys.executable, "-m", "fastdx"]


def interruptible() -> None:
    """Let a child end by signals: tests in the background start with ignored ones."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def run(
    *args: object, stdin: str | bytes = b"", code: int | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command; its exit code, which is checked if one is given, and what it says.

    It runs in this process, since an interpreter takes longer to start than most commands. Its
    streams are files, as they may be in a shell. What an exception would print, it raises.
    """
    descriptor, here = os.dup(0), Path.cwd()
    with (
        TemporaryFile() as given,
        TemporaryFile("w", encoding="utf-8", newline="") as out,
        TemporaryFile("w", encoding="utf-8", newline="") as err,
    ):
        given.write(stdin.encode() if isinstance(stdin, str) else stdin)
        given.seek(0)
        os.dup2(given.fileno(), 0)
        try:
            os.chdir(folder or here)
            with redirect_stdout(out), redirect_stderr(err):
                ended = main([str(arg) for arg in args])
        except SystemExit as e:  # argparse
            ended = int(e.code or 0)
        finally:
            os.chdir(here)
            os.dup2(descriptor, 0)
            os.close(descriptor)
        said = []
        for file in (out, err):
            file.flush()
            said.append(os.pread(file.fileno(), 1 << 30, 0).decode())
    assert code is None or ended == code, said[1]
    return subprocess.CompletedProcess(args, ended, *said)


def fails(message: str, *args: object, stdin: str | bytes = b"") -> str:
    """Run the command, which refuses: all that it says, and among it the message."""
    done = run(*args, stdin=stdin, code=1)
    assert message in done.stderr, done.stderr
    return done.stderr


def python(
    program: str, *args: object, stdin: bytes = b"", code: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter."""
    command = [sys.executable, "-c", program, *map(str, args)]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False,
                          env={**os.environ, **environment})  # fmt: skip
    told = done.stderr.decode()
    assert done.returncode == code, told
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), told)


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
