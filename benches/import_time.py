"""Measure the time of `import fastdx` after numpy's, in fresh interpreters.

    python benches/import_time.py [--runs 41]

numpy is imported first, because every program with fastdx needs it. Prints the median, the fastest
and the slowest run; the operating system has the files in its cache.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

from common import as_installed

STATEMENTS = (
    ("`import fastdx`", "import fastdx"),
    ("`from fastdx import *`: everything", "from fastdx import *"),
    ("the first private sentence", "import fastdx; fastdx.Tem(epsilon=3.0).privatize('A coffee')"),
)


def seconds(statement: str) -> float:
    program = (
        f"import numpy, time\nstart = time.perf_counter()\n{statement}\n"
        "print(time.perf_counter() - start)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=as_installed(),
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=41)
    args = parser.parse_args()
    seconds("import fastdx")  # files come into the cache
    print("| beyond `import numpy` | median | fastest | slowest |\n|---|---|---|---|")
    for name, statement in STATEMENTS:
        runs = [1e3 * seconds(statement) for _ in range(args.runs)]
        print(f"| {name} | {statistics.median(runs):.0f} ms | {min(runs):.0f} ms "
              f"| {max(runs):.0f} ms |")  # fmt: skip


if __name__ == "__main__":
    main()
