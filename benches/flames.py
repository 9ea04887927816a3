"""Draw a flame graph of the time of a row of benches/check.py.

    make profile ROW=search-50                  benches/profiles/search-50.svg
    make profile ROW=search-50 AS=before        benches/profiles/search-50-before.svg

perf records only the row's work, without its preparation. It finds stacks by the unwind tables of
exceptions (DWARF), because the code has no frame pointers. The graph leaves out types in angle
brackets, and frames of closures and of rayon that only call further functions. Python's interpreter
is one frame. The narrowest frames are removed until the picture is small enough.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check import ROOT, ROWS

FOLDER = ROOT / "benches" / "profiles"
MOST = 60_000
FRAME = re.compile(r"^(\s+[0-9a-f]+ )(.*)( \([^()]*\))$")
PLUMBING = re.compile(
    r"rayon|core::(ops|iter|panic|cell)::|std::(panic|sync|thread|sys|rt)|pyo3::|__rust_|"
    r"([\w:]+::)?(\{closure[^:]*\}|\{\{closure\}\}|call(_once|_mut|_a)?|helper|map|next|fold(_with)?|"
    r"for_each|try_for_each|consume_iter|drive(_unindexed)?|run_inline|join_context|do_call|"
    r"catch_unwind|halt_unwinding|execute(_job_closure)?|main_loop|wait_until(_cold|_out_of_work)?|"
    r"in_worker|install|scope|run|bridge(_\w+)?|with_producer|callback|complete)$"
)
PYTHON = re.compile(r"\(.*/(lib)?python3?[\d.]*(\.so[\d.]*)?\)")
NEEDED = {
    "perf": "perf (Debian: apt-get install linux-perf; Ubuntu: linux-tools-generic)",
    "inferno-collapse-perf": "inferno (cargo install --locked inferno)",
    "inferno-flamegraph": "inferno (cargo install --locked inferno)",
}


def tool(name: str) -> str:
    """Return the path of a program; programs installed by cargo are often not on PATH."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin"
    found = shutil.which(name) or shutil.which(name, path=str(cargo))
    if found is None:
        sys.exit(f"make profile needs {NEEDED[name]}")
    return found


def work(name: str, seconds: float, control: Path, answer: Path) -> None:
    """Prepare the row in the recorded process, then let perf record it for `seconds`."""
    import fastdx

    call = ROWS[name].prepare()
    with control.open("w") as orders, answer.open() as told:

        def order(what: str) -> None:
            orders.write(f"{what}\n")
            orders.flush()
            told.readline()

        order("enable")
        start, times = time.perf_counter(), 0
        while not times or time.perf_counter() - start < seconds:
            call()
            times += 1
        taken = time.perf_counter() - start
        order("disable")
    print(f"{name}: {times} times in {taken:.2f} s by {fastdx.__file__}", file=sys.stderr)


def record(name: str, seconds: float, folder: Path) -> Path:
    data, control, answer = folder / "perf.data", folder / "control", folder / "answer"
    os.mkfifo(control)
    os.mkfifo(answer)
    command = [tool("perf"), "record", "--quiet", "--event", "cpu-clock", "--freq", "999"]
    command += ["--call-graph", "dwarf,16384", "--delay", "-1", "--output", str(data)]
    command += ["--control", f"fifo:{control},{answer}", "--", sys.executable, __file__]
    command += [name, "--seconds", str(seconds), "--inside", str(folder)]
    env = {**os.environ, "FASTDX_NUM_THREADS": str(ROWS[name].threads)}
    if subprocess.run(command, env=env, check=False).returncode:
        sys.exit(
            "perf could not record. Does /proc/sys/kernel/perf_event_paranoid forbid it? "
            "2 or less is needed."
        )
    return data


def short(name: str) -> str:
    """Return a function's name without types in angle brackets; `<A as B>::f` becomes `A::f`."""
    name = re.sub(r"\+0x[0-9a-f]+$", "", name).replace("->", "")
    name = re.sub(r"^<(?:impl )?&?(?:mut )?([\w:]+).* as .*?>(::\w+)$", r"\1\2", name)
    while name != (fewer := re.sub(r"(::)?<[^<>]*>", "", name)):
        name = fewer
    return name


def frames(script: str) -> str:
    """Return the output of `perf script` with short names, without frames that only call further.

    Neighbouring frames of one function, where all but the outermost were inlined, become one.
    """
    lines: list[str] = []
    before = ""
    for line in script.splitlines():
        parts = FRAME.match(line)
        if parts is None:
            lines.append(line)
            before = ""
            continue
        address, name, place = parts.groups()
        name = "python" if PYTHON.search(place) else short(name)
        if PLUMBING.match(name):
            continue
        if before and name.rpartition("::")[2] == before.rpartition("::")[2]:
            lines.pop()
            name = max(name, before, key=len)
        lines.append(f"{address}{name}{place}")
        before = name
    return "\n".join(lines) + "\n"


def collapsed(data: Path) -> str:
    """Return the stacks with their counts."""
    script = [tool("perf"), "script", "--input", str(data)]
    told = subprocess.run(
        script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    collapse = [tool("inferno-collapse-perf")]
    given = frames(told.stdout)
    done = subprocess.run(collapse, input=given, stdout=subprocess.PIPE, text=True, check=True)
    if not done.stdout.strip():
        sys.exit("perf recorded nothing")
    return done.stdout


def still(picture: str) -> str:
    """Return the picture without its zoom and search script, which has a licence of its own.

    A frame's title describes it; a browser shows the title under the mouse.
    """
    picture = re.sub(r"<script.*?</script>", "", picture, flags=re.DOTALL)
    picture = re.sub(r"<!--.*?-->", "", picture, flags=re.DOTALL)
    picture = picture.replace(' onload="init(evt)"', "")
    for button in ("unzoom", "search", "matched", "details"):
        picture = re.sub(rf'<text id="{button}".*?</text>', "", picture, flags=re.DOTALL)
    return picture


def drawn(stacks: str, title: str) -> str:
    """Return the graph without the narrowest frames, with at most `MOST` bytes if possible."""
    picture = ""
    for width in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5):
        command = [tool("inferno-flamegraph"), "--title", title, "--countname", "ns"]
        command += ["--deterministic", "--minwidth", str(width)]
        done = subprocess.run(
            command,
            input=stacks,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        picture = still(done.stdout)
        if len(picture.encode()) <= MOST:
            break
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", choices=ROWS, metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--as", dest="name", metavar="NAME", help="for the file: ROW-NAME.svg")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        work(args.row, args.seconds, args.inside / "control", args.inside / "answer")
        return
    for name in NEEDED:
        tool(name)
    with tempfile.TemporaryDirectory() as folder:
        stacks = collapsed(record(args.row, args.seconds, Path(folder)))
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{args.row}{f'-{args.name}' if args.name else ''}.svg"
    path.write_text(drawn(stacks, f"{args.row}: {ROWS[args.row].about}"), "utf-8")
    print(f"{path.relative_to(ROOT)}, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
