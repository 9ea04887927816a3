"""Writes figures into documents, so that none is typed by hand.

    python tools/figures.py FILE …            run the command of every block and write its output
    python tools/figures.py --only NAME FILE …

A block is

    <!-- figures NAME: COMMAND -->
    …
    <!-- end of figures -->

The block contains the command's output, with the commit and the machine of the run. Output without
a table or a picture is shown verbatim.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- figures ([\w-]+): (.*?) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


STAMP = re.compile(r"^\*`.*?`, commit ([0-9a-f]{7,40})\b", re.M)


def git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit() -> str:
    changed = " with changes" if git("status", "--porcelain", "--", "src", "python") else ""
    return f"{git('rev-parse', '--short', 'HEAD')}{changed}"


def stamps(page: Path) -> list[str]:
    """Return the commit of every block, or "none"."""
    found = (STAMP.search(block.group()) for block in BLOCK.finditer(page.read_text("utf-8")))
    return [stamp[1] if stamp else "none" for stamp in found]


def known(stamp: str) -> bool:
    """Whether HEAD comes from the commit of a stamp."""
    asked = ["git", "merge-base", "--is-ancestor", stamp, "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0


def machine() -> str:
    """Return the cores, the processor and its vector instructions as a phrase."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text("utf-8") if cpuinfo.exists() else ""
    told = dict(re.findall(r"^(flags|model name)\s*: (.+)$", text, re.M))
    flags = told.get("flags", "").split()
    wide = [name for flag, name in (("avx512f", "AVX-512"), ("amx_int8", "AMX")) if flag in flags]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    of = f" of {told['model name'].strip()}" if "model name" in told else ""
    return f"{cores} cores{of} with {' and '.join(wide) or 'no AVX-512'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--only", metavar="NAME")
    args = parser.parse_args()

    def run(block: re.Match[str]) -> str:
        start, name, command, end = block.groups()
        if args.only not in (None, name):
            return block.group()
        print(f"{name}: {command}", file=sys.stderr)
        words = [sys.executable if w == "python" else w for w in shlex.split(command)]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        source = f"*`{command}`, commit {commit()}, {machine()}.*"
        output = done.stdout.strip()
        if not re.search(r"^(\||!\[|<picture)", output, re.M):
            output = f"```text\n{output}\n```"
        return f"{start}\n{output}\n\n{source}\n\n{end}"

    for path in args.files:
        old = path.read_text("utf-8")
        new = BLOCK.sub(run, old)
        if new != old:
            beside = path.with_suffix(".tmp")
            beside.write_text(new, "utf-8")
            beside.replace(path)


if __name__ == "__main__":
    main()
