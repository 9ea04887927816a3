"""Load fastdx-serve for minutes while other connections are idle; print a table in Markdown.

    python service/bench/soak.py [--minutes 10] [--idle 1000] [--busy 256] [--bin DIRECTORY]

Service and load generator run on this machine. The exit code is 1 if a request failed, an idle
connection was lost, resident memory changed by more than 5% after the first minute, or the p99 of a
minute was more than 3 times that of the first minute.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_MINUTES = 60
DRIFT = 0.05
SLOWER = 3.0
WARMING = "60"  # seconds
PROBE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


def resident(pid: int) -> float:
    """Resident memory in MB."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def alive(connection: socket.socket) -> bool:
    """Return whether an idle connection still gets an answer."""
    try:
        connection.settimeout(30)
        connection.sendall(PROBE)
        return connection.recv(1 << 12).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def main() -> int:
    """Run the load, print a line per minute, and print the violated conditions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--busy", type=int, default=256)
    default = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--bin", type=Path, default=default)
    args = parser.parse_args()
    if not 1 <= args.minutes <= MOST_MINUTES:
        parser.error(f"--minutes must be from 1 to {MOST_MINUTES}")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Idle connections are cut off after a time: later than this here.
    command = [str(args.bin / "fastdx-serve"), "--epsilon", "3", "--listen", "127.0.0.1:0",
               "--threads", "2", "--idle-time", str(args.minutes * 120)]  # fmt: skip
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stderr is not None
        # Warnings may stand before.
        listening = next(line for line in service.stderr if "listening on " in line)
        host, port = listening.split("listening on ")[1].strip().rsplit(":", 1)
        assert service.stderr.readline().strip().endswith(": ready")
        idle = [socket.create_connection((host, int(port))) for _ in range(args.idle)]
        load = [str(args.bin / "examples" / "fastdx-load"), f"{host}:{port}",
                "--connections", str(args.busy), "--seconds"]  # fmt: skip
        # Lists and laws of the words are made: what grows after that is no cache.
        batches = ["--connections", "8", "--texts", "100", "--words", "20", "--seconds", WARMING]
        subprocess.run([*load[:2], *batches], capture_output=True, check=True)
        print("| minute | requests/s | p50, ms | p99, ms | failed | resident, MB | load average |\n"
              "|---|---|---|---|---|---|---|")  # fmt: skip
        memory, slow, failed = [], [], 0
        for minute in range(1, args.minutes + 1):
            done = subprocess.run([*load, "58"], capture_output=True, check=True, text=True)
            one = json.loads(done.stdout)
            memory.append(resident(service.pid))
            slow.append(one["p99_ms"])
            failed += one["failed"] + one["broken"]
            print(f"| {minute} | {one['per_second']:,.0f} | {one['p50_ms']:.1f} "
                  f"| {one['p99_ms']:.1f} | {one['failed'] + one['broken']} "
                  f"| {memory[-1]:.1f} | {os.getloadavg()[0]:.1f} |", flush=True)  # fmt: skip
        lost = sum(not alive(connection) for connection in idle)
    finally:
        service.terminate()
        service.wait()
    drift = max(abs(m / memory[0] - 1) for m in memory)
    worst = max(slow) / slow[0]
    print(f"\n{args.idle:,} idle connections, of which {lost} were lost, and {args.busy} busy "
          f"ones; {failed} requests failed. Resident memory moved by {drift:.1%} at most after the "
          f"first minute; the slowest p99 was {worst:.1f} times the first minute's.")  # fmt: skip
    return int(bool(failed or lost) or drift > DRIFT or worst > SLOWER)


if __name__ == "__main__":
    sys.exit(main())
