"""Measure how well an observer of response times guesses the word, with and without padding.

The script calls two words in turn. The observer sees the time of one call and guesses the word by a
threshold. The best threshold is learned on one half of the calls. The script prints a table of the
share of right guesses on the other half; 0.5 means that the observer learns nothing.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from fastdx import Tem


def timed(tem: Tem, pair: NDArray[np.uint32], calls: int, seed: int) -> NDArray[np.float64]:
    times = np.empty((calls, 2))
    order = np.random.default_rng(seed).integers(0, 2, calls)
    for i, first in enumerate(order):
        for j in (first, 1 - first):
            word = pair[j : j + 1]
            start = time.perf_counter_ns()
            tem.privatize_ids(word)
            times[i, j] = time.perf_counter_ns() - start
    return times


def right(times: NDArray[np.float64]) -> float:
    half = len(times) // 2
    learn, judge = times[:half], times[half:]
    cuts = np.quantile(learn, np.linspace(0.01, 0.99, 99))
    shares = [((learn[:, 0] < c).mean() + (learn[:, 1] >= c).mean()) / 2 for c in cuts]
    best = int(np.argmax(np.abs(np.array(shares) - 0.5)))
    share = ((judge[:, 0] < cuts[best]).mean() + (judge[:, 1] >= cuts[best]).mean()) / 2
    return float(share if shares[best] >= 0.5 else 1 - share)


def main() -> None:
    plain = Tem(epsilon=3.0)
    pairs = {
        "one seen often, one never before": ("coffee", "jazz"),
        "one isolated, one in a dense region, both warm": ("jazz", "said"),
        "two of a kind, both warm": ("coffee", "tea"),
    }
    print("| two words | right guesses | with `pad=0.001` |\n|---|---|---|")
    for _ in range(3000):
        plain.privatize("coffee tea")
    for name, pair in pairs.items():
        ids = plain.embedding.ids(pair)
        cells = [name]
        for pad, calls in ((None, 4000), (0.001, 1500)):
            share = []
            for repeat in range(1 if "never" not in name else 600):
                # A word is new only once, so each call with a new word gets a fresh Tem.
                tem = Tem(epsilon=3.0, pad=pad)
                if "never" in name:
                    tem.privatize_ids(np.repeat(ids[:1], 50))
                    share.append(timed(tem, ids, 1, repeat)[0])
                else:
                    tem.privatize_ids(np.tile(ids, 30))
                    share = list(timed(tem, ids, calls, 1))
            times = np.array(share)
            # Two standard errors of a share of 0.5 among the calls that judge.
            chance = 1 / np.sqrt(2 * (len(times) - len(times) // 2))
            cells.append(f"{right(times):.2f} (chance: 0.50 ± {chance:.2f})")
        print(f"| {' | '.join(cells)} |")
    print("\nTem, ε = 3, on the built-in vocabulary.")


if __name__ == "__main__":
    main()
