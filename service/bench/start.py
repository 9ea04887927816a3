"""From the start of fastdx-serve to ready, and the memory that it holds: a table in Markdown.

    python service/bench/start.py [--words 400000 2050000] [--bin DIRECTORY] [--folder /tmp]

The script writes large indexes with random vectors and removes them at the end. It opens them with
`verify = false`; a verified index is read once, at the speed of the disk. Other load makes the
start longer, but not its processor time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from fastdx import Embedding

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5
DIMENSIONS = 300


def status(pid: int, field: str) -> float:
    """A field of the process's status, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e6


def processor(pid: int) -> float:
    """The processor's time that a process has taken, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(command: list[str], words: list[str], requests: int) -> tuple[float, ...]:
    """Start once: seconds to ready, of the processor's time; then answer requests: MB of its own,
    and of mapped files."""
    begin = time.perf_counter()
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stderr is not None
        address = ""
        for line in service.stderr:
            if "listening on " in line:
                address = line.split("listening on ")[1].strip()
            if line.strip().endswith(": ready"):
                break
        else:
            raise SystemExit("it did not become ready")
        seconds = time.perf_counter() - begin, processor(service.pid)
        connection = http.client.HTTPConnection(address)
        for i in range(requests):
            some = [words[(i * 20 + j) % len(words)] for j in range(20)]
            connection.request("POST", "/v1/privatize", json.dumps({"text": " ".join(some)}))
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
        return *seconds, status(service.pid, "RssAnon"), status(service.pid, "RssFile")
    finally:
        service.kill()
        service.wait()


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, nargs="*", default=[400_000, 2_050_000])
    default = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--bin", type=Path, default=default)
    parser.add_argument("--folder", type=Path, help="for the large index")
    args = parser.parse_args()
    program = [str(args.bin / "fastdx-serve"), "--listen", "127.0.0.1:0"]
    print("| index, not verified | start to ready, s | of the processor's time, s | of its own, MB "
          "| of mapped files, MB |\n|---|---|---|---|---|")  # fmt: skip

    def show(name: str, flags: list[str], words: list[str], requests: int) -> None:
        runs = [measure([*program, *flags], words, requests) for _ in range(ROUNDS)]
        seconds, cpu = (statistics.median(run[i] for run in runs) for i in (0, 1))
        own, mapped = (max(run[i] for run in runs) for i in (2, 3))
        print(f"| {name} | {seconds:.3f} | {cpu:.2f} | {own:.0f} | {mapped:.0f} |")

    show("built-in vocabulary", ["--epsilon", "3"], list(Embedding.default().words), 2000)
    for count in args.words:
        folder = Path(tempfile.mkdtemp(dir=args.folder))
        try:
            index = folder / "large.fdx"
            vectors = np.random.default_rng(1).standard_normal((count, DIMENSIONS), np.float32)
            names = [f"w{i}" for i in range(count)]
            Embedding(names, vectors).save(index)
            del vectors
            config = folder / "policies.toml"
            policy = '[policies.large]\nepsilon = 3.0\nindex = "large.fdx"\nverify = false\n'
            config.write_text(policy)
            size = index.stat().st_size / 1e6
            name = f"{count:,} words × {DIMENSIONS}, {size:,.0f} MB"
            show(name, ["--config", str(config)], names[:20], 3)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
