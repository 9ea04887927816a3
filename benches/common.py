"""Helpers of the benchmark scripts. Ratios are peer time / fastdx time."""

from __future__ import annotations

import os
from pathlib import Path

# A setting that pins OpenBLAS to an older core would halve numpy's speed; remove it before loading.
_CPU = Path("/proc/cpuinfo")
if _CPU.exists() and "avx512f" in _CPU.read_text():
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from timeit import repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastdx import Embedding
from fastdx.mechanisms import Mechanism

T = TypeVar("T")
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def needed(pattern: str) -> list[Path]:
    """Return files of ../shared/data, of which there must be one at least."""
    return sorted(SHARED.glob(pattern)) or sys.exit(f"../shared/data/{pattern} is not there")


def reviews() -> list[str]:
    """Return the files of IMDB's reviews."""
    return [*map(str, needed("text/imdb.*.jsonl.gz"))]


def as_installed() -> dict[str, str]:
    """Return the environment of an installed program, whose modules are compiled and cached."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def fresh(statement: str) -> float:
    """Return the seconds of a statement in a new interpreter that has imported numpy."""
    program = (f"import numpy, time\nstart = time.perf_counter()\n{statement}\n"
               "print(time.perf_counter() - start)")  # fmt: skip
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=as_installed())
    return float(done.stdout)


def median(call: Callable[[], object], runs: int = 5) -> float:
    """Return the median seconds of a call."""
    return statistics.median(repeat(call, number=1, repeat=runs))


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds of a call, and its result."""
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def flat_index(x: NDArray[np.float32]) -> Any:
    """Make faiss's exact index of vectors."""
    import faiss

    faiss.cvar.distance_compute_blas_threshold = 20
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(np.ascontiguousarray(x))
    return index


def seconds(time: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time >= scale:
            return f"{time / scale:.3g} {unit}"
    return f"{time / 1e-9:.3g} ns"


def report(what: str, ours: float, theirs: float, peer: str) -> None:
    print(f"{what:52s} fastdx {seconds(ours):>9s}   {peer} {seconds(theirs):>9s}   "
          f"{theirs / ours:8.1f}×", flush=True)  # fmt: skip


def clustered(words: int, dim: int, seed: int = 0) -> NDArray[np.float32]:
    """Make vectors whose neighbourhoods are like GloVe's.

    They have clusters of about a hundred words, a slowly falling spectrum, and norms from 3.5 to
    6.5.
    """
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((max(20, words // 100), dim)).astype(np.float32)
    x = 0.8 * centers[rng.integers(0, len(centers), words)]
    x += 0.6 * rng.standard_normal((words, dim)).astype(np.float32)
    x *= (np.arange(1, dim + 1) ** -0.25).astype(np.float32)
    x *= (5 * rng.uniform(0.7, 1.3, words) / np.linalg.norm(x, axis=1))[:, None]
    return x.astype(np.float32)


def embedding(words: int, dim: int) -> Embedding:
    return Embedding([f"w{i}" for i in range(words)], clustered(words, dim))


def texts(words: Sequence[str], count: int, length: int) -> list[str]:
    """Make texts of `length` words drawn by Zipf's law; `words` are in order of frequency."""
    rng = np.random.default_rng(1)
    rank = rng.zipf(1.2, 4 * count * length)
    ids = (rank[rank <= len(words)][: count * length] - 1).reshape(count, length)
    return [" ".join(words[i] for i in row) for row in ids]


def by_rank(words: Sequence[str], count: int, length: int = 100) -> list[str]:
    """Make texts of `count` words in all. The word of rank r has a share ∝ 1/(r + 2.7)."""
    share = 1 / (np.arange(len(words)) + 3.7)
    ids = np.random.default_rng(5).choice(len(words), count, p=share / share.sum())
    return [" ".join(words[i] for i in part) for part in np.split(ids, count // length)]


def a_word(mechanism: Mechanism, texts: Sequence[str], words: int, passes: int = 1) -> list[float]:
    """Return the seconds of processor time that each pass over texts takes for each word."""

    def once() -> float:
        start = time.process_time()
        mechanism.privatize(texts)
        return (time.process_time() - start) / words

    return [once() for _ in range(passes)]
