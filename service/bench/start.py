"""From the start of fastdx-serve to ready, and the memory that it holds: a table in Markdown.

    python service/bench/start.py [--words 400000 2050000]

The script writes large indexes with random vectors and removes them at the end. It opens them with
`verify = false`; a verified index is read once, at the speed of the disk. Other load makes the
start longer, but not its processor time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from compare import SERVE, status

from fastdx import Embedding

ROUNDS = 5
DIMENSIONS = 300


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


def processor(pid: int) -> float:
    """The processor's time that a process has taken, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(flags: list[str], words: list[str], requests: int) -> tuple[float, ...]:
    """Start once: seconds to ready, of the processor's time; then answer requests: MB of its own,
    and of mapped files."""
    with started(*flags) as service:
        used = processor(service.pid)
        connection = http.client.HTTPConnection(service.address)
        for i in range(requests):
            some = [words[(i * 20 + j) % len(words)] for j in range(20)]
            connection.request("POST", "/v1/privatize", json.dumps({"text": " ".join(some)}))
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
        memory = status(service.pid, "RssAnon"), status(service.pid, "RssFile")
    return service.seconds, used, *memory


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, nargs="*", default=[400_000, 2_050_000])
    args = parser.parse_args()
    print("| index, not verified | start to ready, s | of the processor's time, s | of its own, MB "
          "| of mapped files, MB |\n|---|---|---|---|---|")  # fmt: skip

    def show(name: str, flags: list[str], words: list[str], requests: int) -> None:
        runs = [measure(flags, words, requests) for _ in range(ROUNDS)]
        seconds, cpu = (statistics.median(run[i] for run in runs) for i in (0, 1))
        own, mapped = (max(run[i] for run in runs) for i in (2, 3))
        print(f"| {name} | {seconds:.3f} | {cpu:.2f} | {own:.0f} | {mapped:.0f} |")

    show("built-in vocabulary", ["--epsilon", "3"], list(Embedding.default().words), 2000)
    for count in args.words:
        with tempfile.TemporaryDirectory() as folder:
            index, config = Path(folder, "large.fdx"), Path(folder, "policies.toml")
            vectors = np.random.default_rng(1).standard_normal((count, DIMENSIONS), np.float32)
            names = [f"w{i}" for i in range(count)]
            Embedding(names, vectors).save(index)
            del vectors
            policy = '[policies.large]\nepsilon = 3.0\nindex = "large.fdx"\nverify = false\n'
            config.write_text(policy)
            size = index.stat().st_size / 1e6
            name = f"{count:,} words × {DIMENSIONS}, {size:,.0f} MB"
            show(name, ["--config", str(config)], names[:20], 3)


if __name__ == "__main__":
    main()
