"""Load fastdx-serve for minutes while other connections are idle; print a table in Markdown.

    python service/bench/soak.py [--minutes 10]

Service and load generator run on this machine. The exit code is 1 if a request failed, an idle
connection was lost, resident memory changed by more than 5% after the first minute, or the p99 of a
minute was more than 3 times that of the first minute.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import sys

from common import BATCHES, load, started, status

IDLE, BUSY = 1000, 256
"""Connections."""
WARMING = 60  # seconds
DRIFT = 0.05
SLOWER = 3.0
PROBE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


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
    parser.add_argument("--minutes", type=int, choices=range(1, 61), default=10, metavar="1 to 60")
    minutes = parser.parse_args().minutes
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Idle connections are cut off after a time: later than this here.
    flags = ["--epsilon", "3", "--threads", "2", "--idle-time", str(minutes * 120)]
    memory, slow, failed = [], [], 0.0
    with started(*flags) as service:
        host, port = service.address.rsplit(":", 1)
        idle = [socket.create_connection((host, int(port))) for _ in range(IDLE)]
        # Lists and laws of the words are made: what grows after that is no cache.
        load(service.address, WARMING, *BATCHES)
        print("| minute | requests/s | p50, ms | p99, ms | failed | resident, MB | load average |\n"
              "|---|---|---|---|---|---|---|")  # fmt: skip
        for minute in range(1, minutes + 1):
            one = load(service.address, 58, "--connections", str(BUSY))
            lost = one["failed"] + one["broken"]
            memory.append(status(service.pid, "VmRSS"))
            slow.append(one["p99_ms"])
            failed += lost
            print(f"| {minute} | {one['per_second']:,.0f} | {one['p50_ms']:.1f} "
                  f"| {one['p99_ms']:.1f} | {lost} | {memory[-1]:.1f} "
                  f"| {os.getloadavg()[0]:.1f} |", flush=True)  # fmt: skip
        dead = sum(not alive(connection) for connection in idle)
    drift = max(abs(m / memory[0] - 1) for m in memory)
    worst = max(slow) / slow[0]
    print(f"\n{IDLE:,} idle connections, of which {dead} were lost, and {BUSY} busy "
          f"ones; {failed} requests failed. Resident memory moved by {drift:.1%} at most after the "
          f"first minute; the slowest p99 was {worst:.1f} times the first minute's.")  # fmt: skip
    return int(bool(failed or dead) or drift > DRIFT or worst > SLOWER)


if __name__ == "__main__":
    sys.exit(main())
