"""Privatise the IMDB reviews from the command line by both mechanisms: time, speed, memory.

make imdb                     # ../shared/data/text/imdb.*.jsonl.gz, where it is there
make imdb IMDB="a.jsonl …"    # any JSONL files with a field "text"
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    shared = Path(__file__).resolve().parents[2] / "shared" / "data" / "text"
    files = sys.argv[1:] or sorted(map(str, shared.glob("imdb.*.jsonl.gz")))
    if not files:
        sys.exit("no files given, and ../shared/data/text/imdb.*.jsonl.gz is not there")
    for mechanism, epsilon in [("tem", 3), ("laplace", 6)]:
        with tempfile.TemporaryDirectory() as folder:
            command = [
                *[sys.executable, "-m", "fastdx", "privatize", *files, "--column", "text"],
                *["--mechanism", mechanism, "--epsilon", str(epsilon)],
                *["-o", f"{folder}/out.jsonl"],
            ]
            start = time.perf_counter()
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True)
            seconds = time.perf_counter() - start
        found = re.search(r"([\d,]+) of ([\d,]+) words", done.stderr)
        assert found, done.stderr
        words = int(found[2].replace(",", ""))
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{mechanism} ε={epsilon}: {words:,} words in {seconds:.1f} s, "
              f"{words / seconds:,.0f} words/s, peak {peak:.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
