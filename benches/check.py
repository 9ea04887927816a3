"""Check whether a commit is slower than another one, by small benchmarks of both in one run.

    make bench-check                        compare HEAD with the commit of benches/baseline.json
    make bench-check BASE=v0.1              compare with another commit
    make bench-check WRITE=1                store the ratios as the accepted ones
    make bench-check ROWS="emd-50 lists"    some rows; ROUNDS=20: more rounds; NEW=…: not HEAD

The script builds both commits (in target/bench-check, once for equal sources). A round runs every
row once per commit, in fresh processes, one right after the other. It takes the ratio new/base of
the two times. Other load changes between rounds, but hardly between two neighbouring runs. The
table shows the median ratio, and an interval that contains the true median with probability at
least 95% under any noise (by order statistics, the inverse of the sign test).

A row fails if its whole interval is above accepted × tolerance. Rows that noise leaves undecided
get up to twice the rounds. The accepted ratio is the last one stored by a machine with the same
instructions, so a gain cannot be lost unnoticed. With another base, or without a stored ratio, it
is 1. The exit code is 1 if a row fails. Store ratios only from a quiet machine: a stored ratio that
is too high hides a loss.

By default time is processor time of one thread. Rows judged by wall-clock time ("wall") run on two
threads and have a wider tolerance.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
from machine import instructions  # noqa: E402

STORE = ROOT / "target" / "bench-check"
BASELINE = ROOT / "benches" / "baseline.json"
TOLERANCE = {"cpu": 1.10, "wall": 1.25}
ROUNDS = 9
CONFIDENCE = 0.95
SOURCES = ("src", "data", "Cargo.toml", "Cargo.lock", "build.rs", ".cargo")
"""The sources of the extension."""

Task = Callable[[], object]


# --- the rows


class Row(NamedTuple):
    about: str
    prepare: Callable[[], Task]
    """Prepares the data, warms up, and returns the function to time."""
    clocks: tuple[str, ...] = ("cpu",)
    threads: int = 1
    runs: int = 3
    """The least number of runs per process; the best run counts."""


ROWS: dict[str, Row] = {}


def row(name: str, about: str, **options: Any) -> Callable[[Callable[[], Task]], object]:
    def add(prepare: Callable[[], Task]) -> object:
        ROWS[name] = Row(about, prepare, **options)
        return prepare

    return add


def corpus(count: int) -> list[str]:
    from common import prose

    from fastdx import Embedding

    return prose(Embedding.default().words, count, 200)


def warm(call: Task, times: int = 3) -> Task:
    for _ in range(times):
        call()
    return call


@row("text-warm", "Tem, 100,000 words of text, laws kept")
def _() -> Task:
    from fastdx import Tem

    texts, tem = corpus(500), Tem(epsilon=3.0)
    return warm(lambda: tem.privatize(texts), 5)


@row("text-first", "Tem, the same by a new mechanism", runs=2)
def _() -> Task:
    from fastdx import Tem

    texts = corpus(500)
    return lambda: Tem(epsilon=3.0).privatize(texts)


# Idle threads search for work for a while, so processor time says little here.
@row("text-threads", "Tem, 200,000 words of text, laws kept, 2 threads",
     clocks=("wall",), threads=2)  # fmt: skip
def _() -> Task:
    from fastdx import Tem

    texts, tem = corpus(1000), Tem(epsilon=3.0)
    return warm(lambda: tem.privatize(texts), 3)


@row("command", "fastdx privatize, 15 MB of text in a .jsonl.gz, 2 threads",
     clocks=("cpu", "wall"), threads=2, runs=1)  # fmt: skip
def _() -> Task:
    from common import as_installed

    STORE.mkdir(parents=True, exist_ok=True)
    source, out = STORE / "zipf.jsonl.gz", STORE / "out.jsonl"
    if not source.is_file():
        beside = source.with_suffix(".tmp")
        with gzip.open(beside, "wt", encoding="utf-8", compresslevel=6) as file:
            for number, text in enumerate(corpus(13_500)):
                stars = f'"stars": {number % 50 / 10}'
                file.write(f'{{"id": {number}, "text": {json.dumps(text)}, {stars}}}\n')
        beside.replace(source)
    command = [sys.executable, "-m", "fastdx", "privatize", str(source), "--column", "text"]
    command += ["--epsilon", "3", "-q", "-o", str(out)]

    def run() -> None:
        out.unlink(missing_ok=True)
        done = subprocess.run(
            command, stderr=subprocess.PIPE, text=True, check=False, env=as_installed()
        )
        if done.returncode:
            sys.exit(done.stderr)

    return warm(run, 1)


@row("ids", "Tem.privatize_ids, 300,000 Zipf ids, warm")
def _() -> Task:
    import numpy as np

    from fastdx import Tem

    tem = Tem(epsilon=3.0)
    rank = np.random.default_rng(1).zipf(1.2, 1_000_000)
    ids = (rank[rank <= len(tem.embedding)][:300_000] - 1).astype(np.uint32)
    return warm(lambda: tem.privatize_ids(ids), 3)


@row("new-epsilon", "Tem, 64 random words at an ε not seen before, 30,000 × 100, 40 times")
def _() -> Task:
    import numpy as np
    from common import embedding

    from fastdx import Tem

    tem = Tem(embedding(30_000, 100), 4.0)
    words = np.random.default_rng(1).permutation(30_000)[:960].astype(np.uint32)
    for _ in range(2):
        tem.privatize_ids(words)
    numbers = count()

    def draw() -> None:
        for _ in range(40):
            i = next(numbers)
            tem.with_epsilon(4 + 1e-6 * i).privatize_ids(words[64 * (i % 15) :][:64])

    return warm(draw, 1)


def covered() -> tuple[list[str], Callable[[], Any]]:
    from fastdx import Cover, Embedding, Tem

    e = Embedding.default()
    cover = Cover.nearest(e, 40)
    return corpus(200), lambda: Tem(e, 3.0, cover=cover)


@row("cover-warm", "Tem on a cover, 40,000 words of text, laws kept")
def _() -> Task:
    texts, make = covered()
    tem = make()
    return warm(lambda: tem.privatize(texts), 5)


@row("cover-first", "Tem on a cover, the same by a new mechanism", runs=2)
def _() -> Task:
    texts, make = covered()
    return lambda: make().privatize(texts)


def points(e: Any, number: int) -> Any:
    """Words with the noise of MultivariateLaplace at ε = 10."""
    import numpy as np

    rng, dim = np.random.default_rng(1), e.dim
    z = rng.standard_normal((number, dim))
    z *= (rng.gamma(dim, 0.1, number) / np.linalg.norm(z, axis=1))[:, None]
    return e.vectors[rng.integers(0, len(e), number)] + z


def nearest(dim: int) -> Task:
    from common import embedding

    e = embedding(20_000, dim)
    queries = points(e, 1000)
    return warm(lambda: e.nearest(queries))


@row("search-50", "nearest words of 1,000 noisy points, 20,000 × 50")
def _() -> Task:
    return nearest(50)


@row("search-300", "the same, 20,000 × 300")
def _() -> Task:
    return nearest(300)


@row("search-one", "the same, 20,000 × 300, 200 points one by one")
def _() -> Task:
    from common import embedding

    e = embedding(20_000, 300)
    queries = points(e, 200)
    return warm(lambda: [e.nearest(queries[i : i + 1]) for i in range(200)], 1)


@row("lists", "lists of 256 nearest words for 20,000 × 100", runs=1)
def _() -> Task:
    from common import embedding

    from fastdx import Tem

    e = embedding(20_000, 100)
    return lambda: Tem(e, 3.0).build_lists(256)


@row("laplace", "MultivariateLaplace, 10,000 ids, 20,000 × 50")
def _() -> Task:
    import numpy as np
    from common import embedding

    from fastdx import MultivariateLaplace

    madlib = MultivariateLaplace(embedding(20_000, 50), 10.0)
    ids = np.random.default_rng(1).integers(0, 20_000, 10_000).astype(np.uint32)
    return warm(lambda: madlib.privatize_ids(ids))


@row("hyperbolic", "hyperbolic noise, n = 100, ball, ε = 8, 20,000 vectors")
def _() -> Task:
    from fastdx.noise import hyperbolic_laplace

    return warm(lambda: hyperbolic_laplace(100, 8.0, 20_000, base="ball"))


def bags(number: int, length: int) -> tuple[Any, list[list[str]]]:
    import numpy as np
    from common import embedding

    e, rng = embedding(20_000, 300), np.random.default_rng(1)
    picked = [rng.choice(20_000, length, replace=False) for _ in range(number)]
    return e, [[e.words[i] for i in bag] for bag in picked]


def pairs(length: int) -> Task:
    import fastdx

    e, made = bags(40, length)
    distance = fastdx.earth_movers_distance
    return warm(lambda: [distance(a, b, e) for a, b in zip(made[::2], made[1::2], strict=True)])


@row("emd-50", "Earth Mover's distance of 20 pairs, N = 50, × 300")
def _() -> Task:
    return pairs(50)


@row("emd-200", "the same, N = 200")
def _() -> Task:
    return pairs(200)


@row("pairwise", "pairwise_emd, 60 × 60 documents, N = 50, × 300")
def _() -> Task:
    import fastdx

    e, made = bags(120, 50)
    return warm(lambda: fastdx.pairwise_emd(made[:60], e, made[60:]), 1)


@row("certificate", "audit.certify, 10,000 × 100", runs=1)
def _() -> Task:
    from common import embedding

    from fastdx import Tem, audit

    tem = Tem(embedding(10_000, 100), 3.0)
    return lambda: audit.certify(tem)


@row("balanced", "Cover.balanced of the built-in words, k = 40", runs=2)
def _() -> Task:
    from fastdx import Cover, Embedding

    e = Embedding.default()
    return lambda: Cover.balanced(e, 40)


@row("reidentification", "attack on single words, a cover of 10,000 × 50", runs=1)
def _() -> Task:
    from common import embedding

    from fastdx import Cover, Tem
    from fastdx.attacks import reidentification

    e = embedding(10_000, 50)
    tem = Tem(e, 3.0, cover=Cover.nearest(e, 40))
    return lambda: reidentification(tem, "rank")


@row("poincare", "Poincaré training, a tree of 20,000 nodes, 100 dimensions, 4 epochs")
def _() -> Task:
    from fastdx import poincare

    edges = [(f"n{i}", f"n{(i - 1) // 4}") for i in range(1, 20_000)]
    return lambda: poincare.train(edges, 100, epochs=4, threads=1, seed=1)


# --- one row in a process of its own


def used() -> float:
    """Processor seconds of this process and of children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def best(call: Task, runs: int, seconds: float = 0.3) -> dict[str, float]:
    """Return the shortest time by both clocks, of at least `runs` runs in at least `seconds`."""
    times: dict[str, list[float]] = {"cpu": [], "wall": []}
    while len(times["wall"]) < runs or sum(times["wall"]) < seconds:
        cpu, wall = used(), time.perf_counter()
        call()
        times["wall"].append(time.perf_counter() - wall)
        times["cpu"].append(used() - cpu)
    return {clock: min(taken) for clock, taken in times.items()}


def run_here(name: str) -> None:
    import fastdx

    found: dict[str, Any] = {"from": fastdx.__file__}
    try:
        found["times"] = best(ROWS[name].prepare(), ROWS[name].runs)
    except (AttributeError, ImportError, TypeError, fastdx.FastdxError) as e:
        found["lacks"] = f"{type(e).__name__}: {e}"
    print(json.dumps(found))


def run_there(name: str, tree: Path) -> dict[str, Any]:
    """Run a row with the commit that is built in `tree`."""
    threads = str(ROWS[name].threads)
    env = {**os.environ, "PYTHONPATH": str(tree / "python"), "FASTDX_NUM_THREADS": threads}
    command = [sys.executable, __file__, "--here", name]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed in {tree}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not Path(found["from"]).is_relative_to(tree):
        sys.exit(f"measured {found['from']} instead of {tree}")
    return found


# --- statistics


class Verdict(NamedTuple):
    low: float
    ratio: float
    high: float
    limit: float
    rounds: int
    word: str
    """'slower': it fails; 'open': above the limit, but not beyond noise; 'faster'; 'as before'."""


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the median ratio and an interval that contains the true median with at least 95%.

    A ratio is below the true median with probability 1/2, independently of the others. So the k-th
    smallest ratio is above it with the probability that fewer than k of n are below. With fewer
    than six rounds no two ratios give 95%; then the interval is unbounded.
    """
    ordered, n = sorted(ratios), len(ratios)
    k, tail = 0, 0.0  # tail: the probability of fewer than k of n
    while 2 * (tail + math.comb(n, k) / 2**n) <= 1 - CONFIDENCE:
        tail += math.comb(n, k) / 2**n
        k += 1
    if k == 0:
        return 0.0, median(ordered), math.inf
    return ordered[k - 1], median(ordered), ordered[n - k]


def judge(ratios: Sequence[float], accepted: float, tolerance: float) -> Verdict:
    """Judge whether the ratios new/base of the rounds exceed the accepted one."""
    low, middle, high = interval(ratios)
    limit = accepted * tolerance
    if low > limit:
        word = "slower"
    elif middle > limit:
        word = "open"
    else:
        word = "faster" if high < accepted / tolerance else "as before"
    return Verdict(low, middle, high, limit, len(ratios), word)


# --- the two commits


def git(*args: str) -> str:
    command = ["git", "-C", str(ROOT), *args]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: failed")
    return done.stdout.strip()


def sources(commit: str) -> str:
    """Return a short name for the sources and the compiler of a commit's extension."""
    flags = ("RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_PROFILE_")
    settings = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(flags)]
    compiler = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True)
    told = "\n".join([git("ls-tree", commit, "--", *SOURCES), compiler.stdout, *settings])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def checked_out(commit: str) -> Path:
    """Return a work tree of the commit with its extension; build it if these sources are new."""
    tree = STORE / commit[:12]
    if not (tree / "python").is_dir():
        git("worktree", "prune")
        git("worktree", "add", "--quiet", "--force", "--detach", str(tree), commit)
    built = STORE / "extensions" / f"{sources(commit)}.so"
    if not built.is_file():
        print(f"building {git('log', '-1', '--format=%h %s', commit)}", file=sys.stderr)
        target = STORE / "cargo"
        command = ["cargo", "build", "--release", "--locked", "--quiet", "--lib"]
        subprocess.run(
            [*command, "--features", "python"],
            cwd=tree,
            env={**os.environ, "CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable},
            check=True,
        )
        made = next(
            path for name in ("libfastdx.so", "libfastdx.dylib")
            if (path := target / "release" / name).is_file()
        )  # fmt: skip
        built.parent.mkdir(parents=True, exist_ok=True)
        beside = built.with_suffix(".tmp")
        shutil.copy(made, beside)
        beside.replace(built)
    shutil.copy(built, tree / "python" / "fastdx" / "_core.abi3.so")
    return tree


def forget_others(*kept: Path) -> None:
    """Remove work trees of earlier checks; keep extensions."""
    for tree in STORE.glob("[0-9a-f]" * 12):
        if tree not in kept:
            git("worktree", "remove", "--force", str(tree))


# --- the check


class Rounds(NamedTuple):
    ratios: dict[str, list[float]]
    """The accepted ratios, by row or by "row wall"."""
    times: dict[str, list[float]]
    """The hash of the base commit."""
    lacking: dict[str, str]
    """Rows that the base cannot run, with the reasons."""


def key(name: str, clock: str) -> str:
    return name if clock == "cpu" else f"{name} {clock}"


def tolerance(name: str) -> float:
    return TOLERANCE["wall" if name.endswith(" wall") else "cpu"]


def one_round(number: int, name: str, base: Path, new: Path, found: Rounds) -> None:
    """Add a pair of runs; their order alternates from round to round."""
    if number % 2 == 0:
        old, mine = run_there(name, base), run_there(name, new)
    else:
        mine, old = run_there(name, new), run_there(name, base)
    if "lacks" in mine:
        sys.exit(f"{name}: the new commit cannot run it: {mine['lacks']}")
    if "lacks" in old:
        found.lacking[name] = old["lacks"]
        return
    for clock in ROWS[name].clocks:
        k = key(name, clock)
        found.times.setdefault(k, []).append(old["times"][clock])
        found.ratios.setdefault(k, []).append(mine["times"][clock] / old["times"][clock])


def measure(
    names: Sequence[str], base: Path, new: Path, rounds: int, accepted: dict[str, float]
) -> Rounds:
    """Run all rounds, and as many again for rows that noise leaves undecided."""
    found = Rounds({}, {}, {})
    for number in range(2 * rounds):
        going = [n for n in names if n not in found.lacking]
        if number >= rounds:
            now = verdicts_of(found, accepted)
            going = [n for n in going
                     if any(now[key(n, c)].word == "open" for c in ROWS[n].clocks)]  # fmt: skip
        if not going:
            break
        print(f"round {number + 1}: {len(going)} rows", file=sys.stderr, flush=True)
        for name in going:
            one_round(number, name, base, new, found)
    return found


def verdicts_of(found: Rounds, accepted: dict[str, float]) -> dict[str, Verdict]:
    return {k: judge(r, accepted.get(k, 1.0), tolerance(k)) for k, r in found.ratios.items()}


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(BASELINE.read_text("utf-8"))
    return found


def write(commit: str, ratios: dict[str, float], old: dict[str, dict[str, float]]) -> None:
    """Store accepted ratios; keep those of other machines and of rows that were not measured."""
    here = old.get(instructions(), {})
    kept = {**here, **{k: round(r, 3) for k, r in ratios.items()}}
    order = [key(n, c) for n, r in ROWS.items() for c in r.clocks]
    new = {**old, instructions(): {k: kept[k] for k in order if k in kept}}
    data = {"commit": commit, "accepted": dict(sorted(new.items()))}
    BASELINE.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    print(f"\nWritten to {BASELINE.relative_to(ROOT)}.")
    worse = [
        f"{k} {here[k]:.3f} -> {r:.3f}" for k, r in ratios.items() if r > here.get(k, math.inf)
    ]
    if worse:
        print(f"Accepted though worse than before: {', '.join(worse)}.")


def table(found: Rounds, verdicts: dict[str, Verdict], accepted: dict[str, float]) -> str:
    lines = ["| row | what | base, fastest | new / base | 95% interval | accepted | rounds | |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, kind in ROWS.items():
        if name in found.lacking:
            why = f"new: base has {found.lacking[name]}"
            lines.append(f"| {name} | {kind.about} | | | | | | {why} |")
        for k in (key(name, c) for c in kind.clocks):
            if k not in verdicts:
                continue
            v = verdicts[k]
            cells = [
                k,
                kind.about,
                f"{1e3 * min(found.times[k]):.3g} ms",
                f"{v.ratio:.3f}",
                f"{v.low:.3f} to {v.high:.3f}",
                f"{accepted.get(k, 1.0):.3f} × {tolerance(k)}",
                str(v.rounds),
                f"**{v.word}**" if v.word == "slower" else v.word,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", metavar="COMMIT", help="the baseline's commit if left out")
    parser.add_argument("--new", metavar="COMMIT", default="HEAD")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true", help="keep the ratios as the accepted ones")
    parser.add_argument("--here", metavar="ROW", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        run_here(args.here)
        return 0
    if interval([1.0] * args.rounds)[0] == 0:
        parser.error("fewer than 6 rounds say nothing")

    baseline = stored() if BASELINE.is_file() else {"commit": None, "accepted": {}}
    base = git("rev-parse", "--verify", f"{args.base or baseline['commit']}^{{commit}}")
    new = git("rev-parse", "--verify", f"{args.new}^{{commit}}")
    known = baseline["accepted"] if base == baseline["commit"] else {}
    if known and instructions() not in known:
        print(f"Nothing is accepted yet on a machine with {instructions()}: 1 is.", file=sys.stderr)
    accepted = known.get(instructions(), {})
    if args.write and base != baseline["commit"] and set(args.rows) != set(ROWS):
        parser.error("a new baseline needs all rows")
    if args.new == "HEAD" and git("status", "--porcelain", "--", "src", "python"):
        print("Changes that are not committed are not measured.", file=sys.stderr)

    trees = checked_out(base), checked_out(new)
    forget_others(*trees)
    found = measure(args.rows, *trees, args.rounds, accepted)
    verdicts = verdicts_of(found, accepted)
    for what, commit in (("base", base), ("new ", new)):
        print(what, git("log", "-1", "--format=%h %s", commit))
    print(f"\n{table(found, verdicts, accepted)}")
    if args.write:
        write(base, {k: v.ratio for k, v in verdicts.items()}, known)
        if wide := [k for k, v in verdicts.items() if v.high > v.low * tolerance(k)]:
            print(f"Wide intervals, to be measured again on a quiet machine: {', '.join(wide)}.")
        return 0
    for word, meaning in (
        ("faster", "Faster than accepted; WRITE=1 keeps that"),
        ("open", "Above the limit, but not beyond noise; more ROUNDS or a quiet machine decide"),
        ("slower", "Slower than accepted"),
    ):
        if rows := [k for k, v in verdicts.items() if v.word == word]:
            print(f"\n{meaning}: {', '.join(rows)}.")
    return int(any(v.word == "slower" for v in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
