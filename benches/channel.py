"""Measure time and memory of bits, capacity and columns on a large vocabulary.

Core-seconds are the processor time of all threads, so other load on the machine matters little.

    python benches/channel.py --words 400000            # bits and capacity from samples
    python benches/channel.py --words 40000 --pass      # and the pass over all laws, saved and read
    python benches/channel.py --words 20000 --receiver  # counts and features from a million outputs

The vectors are synthetic, in clusters, with 50 dimensions. Tem has the ε of --epsilon.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from fastdx import Embedding, Tem
from fastdx.channel import Channel
from fastdx.counts import Estimator
from fastdx.engines.sklearn import PosteriorFeatures

TEXTS, LENGTH = 5000, 200
T = TypeVar("T")


def clustered(words: int, dim: int, seed: int = 0) -> Embedding:
    """Return words around centres whose sizes follow Zipf's law."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(words // 100, dim))
    place = rng.zipf(1.5, words) % len(centers)
    vectors = (centers[place] + 0.6 * rng.normal(size=(words, dim))).astype(np.float32)
    return Embedding([f"w{i}" for i in range(words)], vectors * 0.55)


def row(name: str, work: Callable[[], T]) -> T:
    """Print a row of the table."""
    start, busy = time.perf_counter(), time.process_time()
    found = work()
    seconds, cores = time.perf_counter() - start, time.process_time() - busy
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    text = str(found) if isinstance(found, float) else ""
    print(f"| {name} | {text} | {cores:,.2f} | {seconds:,.2f} | {memory:,.0f} |", flush=True)
    return found


def receiver(tem: Tem, channel: Channel) -> None:
    """Measure what a receiver does with a million words: counts, and features for learning."""
    rank = 1 / (np.arange(len(tem.space)) + 2.7)
    ids = np.random.default_rng(1).choice(len(rank), (TEXTS, LENGTH), p=rank / rank.sum())
    words = np.array(tem.space.words)
    private = tem.privatize([" ".join(words[text]) for text in ids])
    estimator = Estimator(channel)
    row("`Estimator.add`, a million words", lambda: estimator.add(private))
    row("`Estimator.distribution`, 100 rounds", lambda: estimator.distribution(100))
    features = PosteriorFeatures(channel)
    row("`PosteriorFeatures.fit`: one pass over all laws", lambda: features.fit(private))
    row("`PosteriorFeatures.transform`, a million words", lambda: features.transform(private))


def main() -> None:
    """Measure all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--epsilon", type=float, default=2.66)
    parser.add_argument("--pass", dest="whole", action="store_true")
    parser.add_argument("--receiver", action="store_true")
    args = parser.parse_args()
    tem = Tem(clustered(args.words, args.dim), args.epsilon)
    channel = Channel.of(tem)
    title = f"{args.words:,} words × {args.dim}, Tem, ε = {args.epsilon}"
    print(
        f"| {title} | result | core-seconds | seconds | peak MiB |\n|---|---|---:|---:|---:|",
        flush=True,
    )
    if args.receiver:
        receiver(tem, channel)
        return
    row("bits as guarantees show them", tem.bits)
    row("bits, 4,096 sampled words", lambda: channel.bits(sample=4096))
    row("capacity, 12,288 sampled outputs", channel.sampled_capacity)
    if not args.whole:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "normalizers.fdx"
        row("`save`: one pass over all laws", lambda: channel.save(path))
        again = row("`of(tem, normalizers=path)`", lambda: Channel.of(tem, normalizers=path))
        row("capacity, a sum over all words", lambda: again.capacity)
        row("bits by rank, a sum over all words", again.bits)
        row(
            "100 columns",
            lambda: [again.likelihood(y) for y in range(0, args.words, args.words // 100)],
        )


if __name__ == "__main__":
    main()
