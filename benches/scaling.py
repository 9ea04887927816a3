"""Measure how time and memory grow with the work, and extrapolate to 64 cores.

    make scaling                                           the block of docs/scaling.md, its plot
    python benches/scaling.py --plot scaling.svg           print the block on the screen
    python benches/scaling.py --parts text threads spark   some parts: vocabulary, documents
    python benches/scaling.py --most 100000                without the larger sizes

Every size is measured in a process of its own, and the fastest of a few runs counts. Memory is the
peak of the process minus its memory with the input. Sizes that need more memory than the machine
has are left out, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DIM = 100
EPSILON = 3.0
VOCABULARIES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000)
TEXTS = tuple(10**k for k in range(2, 9))
DOCUMENTS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
CHUNK = 10_000_000
"""The most words in memory at once."""
PARTS = ("vocabulary", "text", "threads", "documents")

Measurements = dict[str, float]


# --- what a process of its own measures


def status(field: str) -> float:
    """Return a memory size in MB from /proc; 0 without /proc."""
    path = Path("/proc/self/status")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith(field)), 0.0)


class Memory:
    """Return the MB at the peak and at the end, minus those held now."""

    def __init__(self) -> None:
        clear = Path("/proc/self/clear_refs")
        if clear.exists():
            clear.write_text("5", "utf-8")  # the peak is that of what follows
        self.before = status("VmRSS")

    def peak(self) -> float:
        return max(0.0, status("VmHWM") - self.before)


def fastest(call: Callable[[], object], runs: int) -> float:
    """Return the seconds of the fastest run."""
    return min(timed(call) for _ in range(runs))


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def vectors(words: int) -> NDArray[np.float32]:
    """Yield vectors in clusters of about a hundred words, as in benches/common.py, by blocks."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((max(20, words // 100), DIM), dtype=np.float32)
    made = np.empty((words, DIM), np.float32)
    falling = (np.arange(1, DIM + 1) ** -0.25).astype(np.float32)
    for start in range(0, words, 50_000):
        block = made[start : start + 50_000]
        rng.standard_normal(block.shape, np.float32, block)
        block *= 0.6
        block += 0.8 * centers[rng.integers(0, len(centers), len(block))]
        block *= falling
        block *= (5 * rng.uniform(0.7, 1.3, len(block)) / np.linalg.norm(block, axis=1))[:, None]
    return made


def vocabulary(size: int) -> Measurements:
    from fastdx import Embedding, Tem

    x, names = vectors(size), [f"w{i}" for i in range(size)]
    memory = Memory()
    e = Embedding(names, x)
    tem = Tem(e, EPSILON)
    rng = np.random.default_rng(1)
    ids = rng.permutation(size)[:31].astype(np.uint32)
    first = timed(lambda: tem.privatize_ids(ids[:1]))
    new = [timed(partial(tem.privatize_ids, ids[i : i + 1])) for i in range(1, len(ids))]
    many = rng.choice(
        ids[:2], 100_000
    )  # two words, so that their laws fit in the caches at every size
    for _ in range(3):
        tem.privatize_ids(many)
    warm = fastest(lambda: tem.privatize_ids(many), 5) / len(many)
    peak = memory.peak()
    make = fastest(lambda: Embedding(names, x), 3)
    return {"make": make, "first": first, "new": float(np.median(new)), "warm": warm,
            "memory": peak}  # fmt: skip


def corpus(words: int) -> list[str]:
    """Make texts of 200 words; beyond a million words the first million repeats."""
    from common import prose

    from fastdx import Embedding

    length = min(words, 200)
    part = prose(Embedding.default().words, min(words, 1_000_000) // length, length)
    return part * (words // (len(part) * length))


def text(words: int) -> Measurements:
    from fastdx import Tem

    texts = corpus(min(words, CHUNK))
    chunks = max(1, words // CHUNK)
    memory = Memory()
    tem = Tem(epsilon=EPSILON)

    def work() -> None:
        for _ in range(chunks):
            tem.privatize(texts)

    first = timed(work)
    runs = 20 if words <= 10_000 else 5 if words <= 1_000_000 else 2 if words <= CHUNK else 1
    warm = fastest(work, runs)
    return {"first": first, "warm": warm, "memory": memory.peak()}


def threads(number: int) -> Measurements:
    """Measure fixed work by the number of threads that the environment sets."""
    from common import clustered

    from fastdx import Embedding, Tem

    texts = corpus(1_000_000)
    tem = Tem(epsilon=EPSILON)
    tem.privatize(texts)
    found = {"text": fastest(lambda: tem.privatize(texts), 5)}
    e = Embedding([f"w{i}" for i in range(20_000)], clustered(20_000, DIM))
    rng = np.random.default_rng(1)
    queries = e.vectors[rng.integers(0, len(e), 5_000)] + rng.normal(0, 0.3, (5_000, DIM))
    e.nearest(queries[:1])
    found["nearest"] = fastest(lambda: e.nearest(queries), 5)
    found["lists"] = fastest(lambda: Tem(e, EPSILON).build_lists(64), 2)
    return found


def process(_: int) -> Measurements:
    """Measure words per second of processor time by one thread, beside equal processes.

    Other load takes no processor time of this process. Contention between the processes does show,
    for memory bandwidth and a core's second thread.
    """
    from fastdx import Tem

    texts = corpus(1_000_000)
    tem = Tem(epsilon=EPSILON)
    for _ in range(3):
        tem.privatize(texts)
    print("ready", flush=True)
    sys.stdin.readline()
    start, used, runs = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < 3:
        tem.privatize(texts)
        runs += 1
    return {"rate": 1_000_000 * runs / (time.process_time() - used)}


def documents(number: int) -> Measurements:
    """Make bags of 50 words: 20 of a topic (a word and its 100 nearest), others by Zipf's law."""
    import fastdx

    e = fastdx.Embedding.default()
    rng = np.random.default_rng(1)
    topics = e.nearest(e.vectors[rng.integers(0, len(e), 200)].astype(np.float64), 100)[0]
    rank = rng.zipf(1.2, 400 * (number + 10))
    common = rank[rank <= len(e)] - 1
    bags = []
    for i in range(number + 10):
        topic = rng.choice(topics[rng.integers(0, len(topics))], 20, replace=False)
        picked = np.concatenate([topic, common[30 * i : 30 * (i + 1)]])
        bags.append([e.words[j] for j in picked])
    queries, bags = bags[:10], bags[10:]
    memory = Memory()
    runs = 3 if number <= 10_000 else 1
    taken = fastest(lambda: fastdx.nearest_documents(queries, bags, e, 5), runs)
    return {"time": taken, "memory": memory.peak()}


MEASURES = {f.__name__: f for f in (vocabulary, text, threads, process, documents)}


# --- processes


def command(part: str, size: int, threads: int | None) -> tuple[list[str], dict[str, str]]:
    env = dict(os.environ)
    if threads is not None:
        env["FASTDX_NUM_THREADS"] = str(threads)
    return [sys.executable, __file__, "--here", part, str(size)], env


def last_line(output: str) -> Measurements:
    found: Measurements = json.loads(output.splitlines()[-1])
    return found


def measured(part: str, size: int, threads: int | None = None) -> Measurements:
    print(f"{part} {size:,}", file=sys.stderr, flush=True)
    words, env = command(part, size, threads)
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return last_line(done.stdout)


def side_by_side(number: int) -> float:
    """Return the words per second of processor time of several processes with one thread each."""
    print(f"{number} processes", file=sys.stderr, flush=True)
    words, env = command("process", number, 1)
    running = [
        subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    for one in running:
        assert one.stdout is not None
        one.stdout.readline()
    for one in running:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    return sum(last_line(one.communicate()[0])["rate"] for one in running)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available() -> float:
    """Return the GB of memory available to programs; infinity if unknown."""
    path = Path("/proc/meminfo")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return next((int(x.split()[1]) / 2**20 for x in lines if x.startswith("MemAvailable")), 1e9)


# --- exponents


class Fit(NamedTuple):
    """Fit a·n^b by least squares of the logarithms."""

    a: float
    b: float
    half: float
    """Half the 95% interval of b, if the errors of the logarithms are normal."""

    def __str__(self) -> str:
        return f"{self.b:.2f} ± {self.half:.2f}"


def fit(sizes: Sequence[float], values: Sequence[float]) -> Fit:
    from scipy import stats

    found = stats.linregress(np.log(sizes), np.log(values))
    half = float(stats.t.ppf(0.975, len(sizes) - 2) * found.stderr)
    return Fit(float(np.exp(found.intercept)), float(found.slope), half)


class Series(NamedTuple):
    """One quantity by size; the exponent is fitted to the sizes from `since`."""

    what: str
    sizes: list[int]
    values: list[float]
    since: int

    def fit(self) -> Fit | None:
        kept = [(n, v) for n, v in zip(self.sizes, self.values, strict=True)
                if n >= self.since and v > 0]  # fmt: skip
        return fit(*zip(*kept, strict=True)) if len(kept) >= 3 else None

    def exponent(self) -> str:
        found = self.fit()
        return str(found) if found else "too few sizes"


# --- tables


def shown(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:,.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def mb(x: float) -> str:
    """Return a memory size as text, from units of 2^20 bytes."""
    return f"{x / 1024:.2g} GB" if x >= 1024 else f"{x:.0f} MB"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def sizes(all_of_them: Sequence[int], most: float) -> list[int]:
    return [n for n in all_of_them if n <= most]


def of_vocabulary(most: float) -> list[Series]:
    found: dict[int, Measurements] = {}
    left: list[str] = []
    for size in sizes(VOCABULARIES, most):
        needed = 4 * size * DIM * 4 / 2**30 + 0.2
        if needed > (free := available()):
            left.append(f"{size:,} words are left out: they need about {needed:.0f} GB, "
                        f"{free:.0f} GB are free")  # fmt: skip
            continue
        found[size] = measured("vocabulary", size)
    kinds = (("make", "make"), ("first", "the first word of all"), ("new", "a new word"),
             ("warm", "a word drawn often"), ("memory", "memory at the peak"))  # fmt: skip
    series = [Series(what, list(found), [f[k] for f in found.values()], 10_000)
              for k, what in kinds]  # fmt: skip
    print("### Vocabulary\n")
    rows = [[f"{n:,}", *(shown(f[k]) for k, _ in kinds[:-1]), mb(f["memory"]),
             mb(n * DIM * 4 / 2**20)] for n, f in found.items()]  # fmt: skip
    rows.append(["*exponent from 10,000 on*", *(s.exponent() for s in series), "1"])
    print(table([f"words × {DIM}", *(what for _, what in kinds), "its vectors alone"], rows))
    for line in left:
        print(line + ".\n")
    return series


def of_text(most: float) -> list[Series]:
    found = {n: measured("text", n) for n in sizes(TEXTS, most)}
    since = 10_000
    series = [
        Series("the first time", list(found), [f["first"] for f in found.values()], since),
        Series("again", list(found), [f["warm"] for f in found.values()], since),
        Series("memory at the peak", list(found), [f["memory"] for f in found.values()], since),
    ]
    print("### Text\n")
    rows = [[f"{n:,}", shown(f["first"]), shown(f["warm"]), f"{n / f['warm'] / 1e6:.2g} million",
             mb(f["memory"])] for n, f in found.items()]  # fmt: skip
    rows.append(["*exponent from 10,000 on*", *(s.exponent() for s in series[:2]), "",
                 series[2].exponent()])  # fmt: skip
    print(table(["words", "the first time", "again", "words/s", "memory at the peak"], rows))
    return series


def of_threads() -> None:
    most = cores()
    numbers = sorted({2**k for k in range(most.bit_length()) if 2**k <= most} | {most})
    found = {n: measured("threads", n, n) for n in numbers}
    together = {n: max(side_by_side(n) for _ in range(3)) for n in numbers}
    rows = []
    for key, what in (("text", "text, 1,000,000 words, again"),
                      ("nearest", f"nearest words of 5,000 points, 20,000 × {DIM}"),
                      ("lists", f"lists of 64 words for 20,000 × {DIM}")):  # fmt: skip
        times = [found[n][key] for n in numbers]
        rows.append([what, *map(shown, times), f"{times[0] / times[-1]:.2f}"])
    rows.append(["text, a process a thread: words a second of processor time, together",
                 *(f"{together[n] / 1e6:.2g} million" for n in numbers),
                 f"{together[most] / together[1]:.2f}"])  # fmt: skip
    print("### Threads\n")
    head = [f"{n} thread{'s' if n > 1 else ''}" for n in numbers]
    print(table(["work", *head, "speed-up"], rows))


def of_documents(most: float) -> list[Series]:
    found = {n: measured("documents", n) for n in sizes(DOCUMENTS, most)}
    series = [
        Series("10 queries", list(found), [f["time"] for f in found.values()], 1_000),
        Series("memory at the peak", list(found), [f["memory"] for f in found.values()], 1_000),
    ]
    print("### Documents\n")
    rows = [[f"{n:,}", shown(f["time"]), shown(f["time"] / (10 * n)), mb(f["memory"])]
            for n, f in found.items()]  # fmt: skip
    rows.append(["*exponent from 1,000 on*", series[0].exponent(), "", series[1].exponent()])
    print(table(["documents of 50 words", "10 queries, 5 nearest each", "a pair",
                 "memory at the peak"], rows))  # fmt: skip
    return series


# --- the plot


def draw(path: Path, panels: dict[str, tuple[str, list[Series]]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    grey = "#808080"
    mpl.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "fastdx", "font.size": 11, "text.color": grey,
        "axes.edgecolor": grey, "axes.labelcolor": grey, "axes.titlecolor": grey,
        "xtick.color": grey, "ytick.color": grey, "axes.spines.top": False,
        "axes.spines.right": False,
    })  # fmt: skip
    figure, axes = plt.subplots(2, 2, figsize=(10, 8))
    colors = ("#1a9e8f", "#d9822b", "#6a7fd1", "#b5548c", grey)
    for ax, (title, (label, series)) in zip(axes.flat, panels.items(), strict=False):
        for color, s in zip(colors, series, strict=False):
            found = s.fit()
            name = s.what if found is None else f"{s.what}: {found}"
            ax.loglog(s.sizes, s.values, "o", color=color, markersize=4, label=name)
            if found is not None:
                ends = np.array([max(s.since, min(s.sizes)), max(s.sizes)], float)
                ax.loglog(ends, found.a * ends**found.b, color=color)
        ax.minorticks_off()
        ax.set_title(title)
        ax.set_ylabel(label)
        ax.set_ylim(top=ax.get_ylim()[1] * 10 ** (0.5 * len(series)))  # the legend's place
        ax.legend(fontsize="small", frameon=False, loc="upper left")
    figure.tight_layout()
    figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, metavar="FILE", help="an SVG; needs all parts")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--most", type=float, default=np.inf, metavar="N")
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(MEASURES[args.here[0]](int(args.here[1]))))
        return
    wanted = set(args.parts)
    panels: dict[str, tuple[str, list[Series]]] = {}
    if "vocabulary" in wanted:
        *times, memory = of_vocabulary(args.most)
        panels["words of the vocabulary"] = ("seconds", times)
    if "text" in wanted:
        written = of_text(args.most)
        panels["words of text"] = ("seconds", written[:2])
    if "threads" in wanted:
        of_threads()
    if "documents" in wanted:
        searched = of_documents(args.most)
        panels["documents searched"] = ("seconds", searched[:1])
    if args.plot:
        peaks = [memory._replace(what="vocabulary"), written[2]._replace(what="text"),
                 searched[1]._replace(what="documents")]  # fmt: skip
        draw(args.plot, {**panels, "memory, by words or documents": ("MB", peaks)})


if __name__ == "__main__":
    main()
