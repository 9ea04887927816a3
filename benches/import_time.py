"""Measure the time of `import fastdx` after numpy's and of the command, in fresh interpreters.

numpy is imported first, because every program with fastdx needs it. Prints the median, the fastest
and the slowest run; the operating system has the files in its cache.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from common import as_installed, fresh

RUNS = 41
STATEMENTS = (
    ("`import fastdx`", "import fastdx"),
    ("`from fastdx import *`: everything", "from fastdx import *"),
    ("the first private sentence", "import fastdx; fastdx.Tem(epsilon=3.0).privatize('A coffee')"),
)


def process(*arguments: str) -> float:
    """Return the seconds of a whole process, which gets one line."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        input="I would like to book a table for two.\n",
        capture_output=True,
        text=True,
        check=True,
        env=as_installed(),
    )
    return time.perf_counter() - start


def row(name: str, runs: list[float]) -> None:
    """Print a row of times in milliseconds."""
    of = [f"{1e3 * x:.0f} ms" for x in (statistics.median(runs), min(runs), max(runs))]
    print(f"| {name} | {' | '.join(of)} |", flush=True)


def main() -> None:
    fresh("import fastdx")  # files come into the cache
    print("| beyond `import numpy` | median | fastest | slowest |\n|---|---|---|---|")
    for name, statement in STATEMENTS:
        row(name, [fresh(statement) for _ in range(RUNS)])
    print("\n| a whole process | median | fastest | slowest |\n|---|---|---|---|")
    row("Python that does nothing", [process("-c", "") for _ in range(RUNS)])
    command = ("-m", "fastdx", "privatize", "-q")
    row("`fastdx privatize` on one line", [process(*command) for _ in range(RUNS)])


if __name__ == "__main__":
    main()
