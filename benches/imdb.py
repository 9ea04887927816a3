"""Measure time, speed and memory of the command on the IMDB reviews, with both mechanisms."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time

from common import as_installed, reviews


def main() -> None:
    files = reviews()
    print("| IMDB by the command | words | time | words/s | peak memory |\n|---|---|---|---|---|")
    for mechanism, epsilon in [("tem", 3), ("laplace", 6)]:
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, "-m", "fastdx", "privatize", "--column", "text"]
            program += ["--mechanism", mechanism, "--epsilon", str(epsilon)]
            # The first run compiles the modules and fills the file cache.
            line = b'{"text": "tea"}\n'
            subprocess.run(program, input=line, capture_output=True, check=True, env=as_installed())
            command = [*program, *files, "-o", f"{folder}/out.jsonl"]
            start = time.perf_counter()
            with subprocess.Popen(
                command, stderr=subprocess.PIPE, text=True, env=as_installed()
            ) as process:
                assert process.stderr is not None
                told = process.stderr.read()
                # The memory of this process alone; rusage would give the largest of all children.
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - start
        assert process.returncode == 0, told
        found = re.search(r"fastdx: ([\d,]+) words", told)
        assert found, told
        words = int(found[1].replace(",", ""))
        peak = used.ru_maxrss / 1024
        print(f"| `{mechanism}`, ε = {epsilon} | {words:,} | {seconds:.1f} s | "
              f"{words / seconds:,.0f} | {peak:.0f} MB |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
