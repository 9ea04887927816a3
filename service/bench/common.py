"""What the measurements of the service share. The programs are those of `make bench-service`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
SERVE, LOAD = str(BIN / "fastdx-serve"), str(BIN / "examples" / "fastdx-load")
BATCHES = ["--connections", "8", "--texts", "100", "--words", "20"]


class Started(NamedTuple):
    """A service that is ready: its process, HOST:PORT, and the seconds until then."""

    pid: int
    address: str
    seconds: float


@contextmanager
def started(*flags: str) -> Iterator[Started]:
    """Start fastdx-serve, wait until it is ready, and end it."""
    begin = time.perf_counter()
    command = [SERVE, "--listen", "127.0.0.1:0", *flags]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stderr is not None
        address = ""
        # Warnings may stand before.
        for line in service.stderr:
            if "listening on " in line:
                address = line.split("listening on ")[1].strip()
            if line.strip().endswith(": ready"):
                break
        else:
            raise SystemExit("it did not become ready")
        yield Started(service.pid, address, time.perf_counter() - begin)
    finally:
        service.terminate()
        service.wait()


def load(address: str, seconds: float, *flags: str) -> dict[str, float]:
    """Send requests for so long, and return what fastdx-load says."""
    command = [LOAD, address, "--seconds", str(seconds), *flags]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def status(pid: int, field: str) -> float:
    """A field of the process's status, in MB: VmRSS is its resident memory."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e6
