"""Compare Tem on covers with Tem: processor time of text, by one thread.

    python benches/covers.py [--more] [--large]

The text has words of the built-in vocabulary, by 1/(rank + 2.7). The first pass makes lists and
tables; the warm passes come after two others, the late ones after forty, and tables are made in
all between. Mechanisms take turns, and medians are printed; for all passes together, the mean.

--more: reviews, ids and new words, by the clock. --large: new words of 400,000 × 300 as well
(random vectors in clusters; its cover takes minutes to make).
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from functools import partial

import numpy as np
from common import SHARED, by_rank, clustered, embedding, median, processor_time, seconds

from fastdx import Cover, Embedding, NeighborResponse, Tem
from fastdx.mechanisms import Mechanism

K = 40
WORDS = 300_000
EPSILONS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
PARTS = ("first pass", "warm", "late")
EVERY = ("first pass", "second", *("warm",) * 3, *("between",) * 35, *("late",) * 3)


def table(runs: int) -> None:
    """Print the processor time of a word for Tem and for balanced covers of 20 and 40."""
    e = Embedding.default()
    covers = {"Tem": None, **{f"cover={k}": Cover.balanced(e, k) for k in (20, 40)}}
    texts = by_rank(e.words, WORDS)

    def took(mechanism: Mechanism) -> float:
        return processor_time(mechanism, texts) / WORDS

    parts = (*PARTS, f"all {len(EVERY)} passes")
    print("| ε | " + " | ".join(f"{name}, {part}" for part in parts for name in covers) + " |")
    print("|---" * (1 + len(parts) * len(covers)) + "|")
    for epsilon in EPSILONS:
        times: dict[tuple[str, str], list[float]] = {}
        for _ in range(runs):
            tems = {name: Tem(e, epsilon, cover=cover, threads=1) for name, cover in covers.items()}
            for part in EVERY:
                for name, tem in tems.items():
                    once = took(tem)
                    for which in (part, parts[-1]):
                        times.setdefault((which, name), []).append(once)
        cells = [f"{epsilon:g}"]
        for part in parts:
            middle = np.mean if part == parts[-1] else np.median
            tem = float(middle(times[part, "Tem"]))
            cells.append(seconds(tem))
            for name in covers:
                if name != "Tem":
                    cover = float(middle(times[part, name]))
                    cells.append(f"{seconds(cover)} ({cover / tem:.2f} ×)")
        print(f"| {' | '.join(cells)} |", flush=True)


def beside(what: str, cover: float, plain: float) -> None:
    print(f"{what:58s} cover {seconds(cover):>8s}   Tem {seconds(plain):>8s}   "
          f"{cover / plain:6.2f}", flush=True)  # fmt: skip


def reviews() -> list[str]:
    path = SHARED / "text" / "imdb.train.jsonl.gz"
    if not path.exists():
        print("no ../shared: Zipf text in the place of reviews")
        words, rng = Embedding.default().words, np.random.default_rng(0)
        ranks = rng.zipf(1.2, 4_000_000)
        ranks = ranks[ranks <= len(words)] - 1
        return [" ".join(words[i] for i in part) for part in np.array_split(ranks, 8000)]
    lines = gzip.decompress(path.read_bytes()).splitlines()[:8000]
    return [json.loads(line)["text"] for line in lines]


def text(e: Embedding, cover: Cover) -> None:
    """Time a corpus with a new mechanism, and a second time."""
    texts = reviews()
    words = sum(len(t.split()) for t in texts)
    for epsilon in (3.0, 4.0, 6.0):
        first: dict[bool, list[float]] = {True: [], False: []}
        again: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(5):
            for covered in (False, True):
                tem = Tem(e, epsilon, cover=cover if covered else None)
                first[covered].append(median(partial(tem.privatize, texts), 1) / words)
                again[covered].append(median(partial(tem.privatize, texts), 3) / words)
        for name, times in (("first pass", first), ("again", again)):
            beside(f"{len(texts):,} texts, ε = {epsilon:g}, a word, {name}",
                   min(times[True]), min(times[False]))  # fmt: skip


def draws(e: Embedding, cover: Cover) -> None:
    ids = np.arange(500, dtype=np.uint32).repeat(2000)

    def warm(mechanism: Mechanism) -> float:
        mechanism.privatize_ids(ids)
        return median(partial(mechanism.privatize_ids, ids), 9) / len(ids)

    beside("1,000,000 ids of 500 words, warm, each", warm(Tem(e, 3.0, cover=cover)),
           warm(Tem(e, 3.0)))  # fmt: skip
    beside("the same by NeighborResponse", warm(NeighborResponse(e, 7.0, cover=cover)),
           warm(Tem(e, 3.0)))  # fmt: skip


def new_words(e: Embedding, cover: Cover, epsilon: float, count: int) -> None:
    """Time calls with one new word each, for a Tem with stored lists and one without."""
    ids = np.random.default_rng(1).permutation(len(e))[:count].astype(np.uint32)
    lists = Tem(e, epsilon).build_lists() if len(e) <= 100_000 else None
    for name, space in (("", e), ("with lists, ", lists)):
        if space is None:
            continue
        plain = space if isinstance(space, Tem) else Tem(space, epsilon)
        covered = Tem(plain.space, epsilon, cover=cover)
        times: dict[bool, list[float]] = {True: [], False: []}
        for one in ids:
            for tem, kept in ((plain, times[False]), (covered, times[True])):
                start = time.perf_counter()
                tem.privatize_ids([one])
                kept.append(time.perf_counter() - start)
        beside(f"a new word, {name}{len(e):,} × {e.dim}", float(np.median(times[True])),
               float(np.median(times[False])))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--more", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    if not (args.more or args.large):
        return table(args.runs)
    e = Embedding.default()
    cover = Cover.balanced(e, K)
    text(e, cover)
    draws(e, cover)
    e = embedding(20_000, 50)
    new_words(e, Cover.nearest(e, K), 3.0, 500)
    if args.large:
        words = 400_000
        e = Embedding([f"w{i}" for i in range(words)], clustered(words, 300))
        start = time.perf_counter()
        cover = Cover.nearest(e, K)
        print(f"a cover of k = {K} for {words:,} × 300: {time.perf_counter() - start:.0f} s")
        new_words(e, cover, 3.0, 100)


if __name__ == "__main__":
    main()
