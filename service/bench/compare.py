"""fastdx-serve against Starlette and uvicorn around Tem, in one run: a table in Markdown.

    python service/bench/compare.py [--seconds 5] [--bin DIRECTORY]

Servers and load share the machine. Each round warms and measures all servers in turn; the table
has the medians of three rounds. The binaries are those of `make bench-service`. Where wrk is
installed, it sends the same requests to fastdx-serve, and has rows of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
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
ROUNDS = 3
WARMING = 3  # seconds
LOADS = {
    "1 text of 10 words, 16 connections": ["--connections", "16"],
    "100 texts of 20 words, 8 connections": [
        "--connections",
        "8",
        "--texts",
        "100",
        "--words",
        "20",
    ],
}
KEY = "0123456789abcdef"
WRK = "fastdx-serve, by wrk"


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


def resident(pid: int) -> float:
    """Resident memory in MB."""
    status = Path(f"/proc/{pid}/statm").read_text().split()
    return int(status[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def by_wrk(where: str, requests: Path, connections: str, seconds: float) -> dict[str, float]:
    """Send saved requests by wrk, which takes whole seconds."""
    command = ["wrk", "--threads", "2", "--connections", connections,
               "--duration", f"{max(1, round(seconds))}s", "--script", "service/bench/wrk.lua",
               f"http://{where}", "--", str(requests)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=ROOT)
    one: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if one["failed"] or one["broken"] or not one["per_second"]:
        sys.exit(f"wrk: {done.stdout}")
    return one


def show(names: list[str], found: dict[tuple[str, str], list[dict[str, float]]]) -> None:
    """Print a table per load, of the medians of the rounds."""
    for load in LOADS:
        print(f"| {load} | requests/s | p50, ms | p99, ms |\n|---|---|---|---|")
        for name in names:
            runs = found[load, name]
            rate, p50, p99 = (
                statistics.median(run[key] for run in runs)
                for key in ("per_second", "p50_ms", "p99_ms")
            )
            print(f"| {name} | {rate:,.0f} | {p50:.2f} | {p99:.2f} |")
        print()


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    default = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--bin", type=Path, default=default)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    (folder / "keys").write_text(f"load {KEY}\n")
    port = 18181
    where = f"127.0.0.1:{port}"
    own = [str(args.bin / "fastdx-serve"), "--epsilon", "3", "--listen", where, "--threads", "2"]
    paid = ["--keys", str(folder / "keys"), "--budget", "1e12", "--ledger", str(folder / "ledger")]
    uvicorn = [sys.executable, "-m", "uvicorn", "--app-dir", "examples", "asgi:app", "--port",
               str(port), "--no-access-log", "--log-level", "error", "--workers"]  # fmt: skip
    servers = {
        "fastdx-serve": own,
        "the same with a ledger": own + paid,
        "uvicorn, 1 worker": [*uvicorn, "1"],
        "uvicorn, 2 workers": [*uvicorn, "2"],
    }
    names = list(servers)
    saved = {load: folder / f"requests-{i}" for i, load in enumerate(LOADS)}
    if shutil.which("wrk"):
        names.insert(1, WRK)
        for load, path in saved.items():
            generator = [str(args.bin / "examples" / "fastdx-load"), where, *LOADS[load]]
            subprocess.run([*generator, "--save", str(path)], check=True)
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    memory = 0.0
    for _ in range(ROUNDS):
        for name, command in servers.items():
            with running(command, port) as pid:
                # Not measured: lists and laws of the words are made.
                warming = ("", LOADS["100 texts of 20 words, 8 connections"])
                for load, flags in [warming, *LOADS.items()]:
                    generator = [str(args.bin / "examples" / "fastdx-load"), where, *flags]
                    generator += ["--seconds", str(args.seconds if load else WARMING)]
                    if "ledger" in name:
                        generator += ["--key", KEY]
                    done = subprocess.run(generator, capture_output=True, check=True, text=True)
                    if not load:
                        continue
                    one = json.loads(done.stdout)
                    if one["failed"] or one["broken"]:
                        sys.exit(f"{name}, {load}: {done.stdout}")
                    found.setdefault((load, name), []).append(one)
                    if name == "fastdx-serve" and WRK in names:
                        one = by_wrk(where, saved[load], flags[1], args.seconds)
                        found.setdefault((load, WRK), []).append(one)
                if name == "fastdx-serve":
                    memory = max(memory, resident(pid))
    show(names, found)
    print(f"fastdx-serve held {memory:.0f} MB at most.")
    if WRK not in names:
        print("wrk was not installed, so only our own driver measured.")


if __name__ == "__main__":
    main()
