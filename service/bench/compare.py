"""fastdx-serve against Starlette and uvicorn around Tem, in one run: a table in Markdown.

    python service/bench/compare.py [--seconds 5]

Servers and load share the machine. Each round warms and measures all servers in turn; the table
has the medians of three rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
SERVE, LOAD = str(BIN / "fastdx-serve"), str(BIN / "examples" / "fastdx-load")
"""The programs of `make bench-service`."""

ROUNDS = 3
WARMING = 3  # seconds
BATCHES = ["--connections", "8", "--texts", "100", "--words", "20"]
LOADS = {
    "1 text of 10 words, 16 connections": ["--connections", "16"],
    "100 texts of 20 words, 8 connections": BATCHES,
}
KEY = "0123456789abcdef"


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """Start a server, wait until it listens and answers, and end it and its workers."""
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        time.sleep(2)  # workers, and policies
        yield server.pid
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


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


def show(names: list[str], found: dict[tuple[str, str], list[dict[str, float]]]) -> None:
    """Print a table per load, of the medians of the rounds."""
    for kind in LOADS:
        print(f"| {kind} | requests/s | p50, ms | p99, ms |\n|---|---|---|---|")
        for name in names:
            rate, p50, p99 = (
                statistics.median(run[key] for run in found[kind, name])
                for key in ("per_second", "p50_ms", "p99_ms")
            )
            print(f"| {name} | {rate:,.0f} | {p50:.2f} | {p99:.2f} |")
        print()


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    (folder / "keys").write_text(f"load {KEY}\n")
    port = 18181
    where = f"127.0.0.1:{port}"
    own = [SERVE, "--epsilon", "3", "--listen", where, "--threads", "2"]
    paid = ["--keys", str(folder / "keys"), "--budget", "1e12", "--ledger", str(folder / "ledger")]
    uvicorn = [sys.executable, "-m", "uvicorn", "--app-dir", "examples", "asgi:app", "--port",
               str(port), "--no-access-log", "--log-level", "error", "--workers"]  # fmt: skip
    servers = {
        "fastdx-serve": own,
        "the same with a ledger": own + paid,
        "uvicorn, 1 worker": [*uvicorn, "1"],
        "uvicorn, 2 workers": [*uvicorn, "2"],
    }
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    memory = 0.0
    for _ in range(ROUNDS):
        for name, command in servers.items():
            key = ["--key", KEY] if "ledger" in name else []
            with running(command, port) as pid:
                # Not measured: lists and laws of the words are made.
                load(where, WARMING, *BATCHES, *key)
                for kind, flags in LOADS.items():
                    one = load(where, args.seconds, *flags, *key)
                    if one["failed"] or one["broken"]:
                        sys.exit(f"{name}, {kind}: {one}")
                    found.setdefault((kind, name), []).append(one)
                if name == "fastdx-serve":
                    memory = max(memory, status(pid, "VmRSS"))
    show(list(servers), found)
    print(f"fastdx-serve held {memory:.0f} MB at most.")


if __name__ == "__main__":
    main()
