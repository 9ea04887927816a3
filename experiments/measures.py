"""Shared by several experiments: words, covers, the search for an ε, and measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments.tables import SEED
from fastdx import Cover, Embedding, Mechanism, Tem, calibration, tokenize
from fastdx.channel import Channel, law
from fastdx.lab.evaluation import Interval

RESAMPLED = 2000
BINS = 10

Numbers = NDArray[np.float64]


# Words.


by_rank = partial(law.by_rank, None)
"""How often words are written: 1/(rank + 2.7)."""


def spread(e: Any, count: int) -> list[str]:
    """So many words, spread evenly over the vocabulary."""
    return [e.words[i] for i in np.linspace(0, len(e) - 1, count).astype(int)]


def ids_of(texts: Iterable[str], e: Embedding) -> list[NDArray[np.uint32]]:
    """The known words of each text."""
    places = {word: i for i, word in enumerate(e.words)}
    return [np.array([places[w] for w in tokenize(t, e) if w in places], dtype=np.uint32)
            for t in texts]  # fmt: skip


# Mechanisms.


@cache
def cover(e: Embedding, k: int, exclude: str | None = None) -> Cover:
    """The balanced cover, made once."""
    return Cover.balanced(e, k, exclude=exclude)


def tem(
    e: Embedding, epsilon: float, k: int | None = None, *, exclude: str | None = None, **more: Any
) -> Tem:
    """Tem on a balanced cover of k, or on none."""
    if k is None:
        return Tem(e, epsilon, exclude=exclude, **more)
    return Tem(e, epsilon, cover=cover(e, k, exclude), **more)


def narrowed(
    keeps: Callable[[float], bool], low: float, high: float, ratio: float
) -> tuple[float, float]:
    """Two ε of at most that ratio, between which a promise that the lower one keeps is lost."""
    while high / low > ratio:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low, high


def epsilon_of_bits(make: Callable[[float], Mechanism], bits: float) -> float:
    """The ε at which a word's output tells so many bits, to about 1%."""

    def less(epsilon: float) -> bool:
        made = make(epsilon)
        return float(Channel.of(made).bits(sample=min(400, len(made.space)))) < bits

    low, high = narrowed(less, 0.3, 40.0, 1.01)
    return (low * high) ** 0.5


# Measures.


def unchanged(mechanism: Mechanism) -> float:
    """Mean N_w of 200 words spread over the vocabulary: how much noise an ε is there."""
    words = spread(mechanism.space, 200)
    return float(calibration.statistics(mechanism, words, 300, inputs=False)["N_w"].mean())


def counted(mechanism: Mechanism, words: Sequence[str], draws: int) -> dict[str, float]:
    """N_w and S_w of words, in draws: means, their standard errors, and the worst of each."""
    table = calibration.statistics(mechanism, words, draws, inputs=False, confidence=0.95)
    n, s = draws * table["N_w"], table["S_w"]
    worst = int(np.argmax(n))
    return {
        "words": len(n), "mean_n": float(n.mean()), "error_n": float(n.std(ddof=1) / len(n) ** 0.5),
        "p99_n": float(np.quantile(n, 0.99)), "max_n": float(n[worst]),
        "low_n": draws * float(table["N_w_low"][worst]),
        "high_n": draws * float(table["N_w_high"][worst]),
        "mean_s": float(s.mean()), "error_s": float(s.std(ddof=1) / len(s) ** 0.5),
        "min_s": float(s.min()),
    }  # fmt: skip


def about(counts: dict[str, float], key: str, digits: int = 0) -> str:
    """The mean N_w or S_w of `counted`, key "n" or "s", and half of its 95% interval."""
    mean, half = counts[f"mean_{key}"], 1.96 * counts[f"error_{key}"]
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def worst(counts: dict[str, float]) -> str:
    """The worst N_w of `counted`, and its 95% interval."""
    return f"{counts['max_n']:.0f} [{counts['low_n']:.0f}, {counts['high_n']:.0f}]"


def right(found: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
    """Which answers are right."""
    return np.asarray(found) == np.asarray(labels)


def ranked(scores: Numbers, relevant: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """The average precision and the reciprocal rank of each query; a row a query."""
    hits = np.take_along_axis(relevant, np.argsort(-scores, axis=1, kind="stable"), axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return (precision * hits).sum(axis=1) / hits.sum(axis=1), 1 / (hits.argmax(axis=1) + 1)


def resampled(sums: Numbers, sizes: ArrayLike) -> tuple[float, float]:
    """The 95% interval of a ratio of sums, by the bootstrap over their parts."""
    n = len(sums)
    drawn = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=RESAMPLED)
    low, high = np.quantile(drawn @ sums / np.maximum(drawn @ sizes, 1), (0.025, 0.975))
    return float(low), float(high)


def mean_of(values: Numbers) -> Interval:
    """A mean, with its 95% interval by the bootstrap."""
    return Interval(float(values.mean()), *resampled(values, np.ones(len(values))))


def share(named: Numbers, content: Numbers) -> str:
    """A share of words, with its 95% interval by the bootstrap over texts."""
    low, high = resampled(named, content)
    return f"{named.sum() / content.sum():.3f} ({low:.3f} to {high:.3f})"


def by_texts(found: Numbers, of: Numbers) -> tuple[float, float]:
    """A share of words, and half of its 95% interval by texts, whose words are not independent."""
    total = max(of.sum(), 1.0)
    share = float(found.sum() / total)
    return share, 1.96 * float(np.sqrt(((found - share * of) ** 2).sum())) / total


def calibration_error(certainty: Numbers, hits: Numbers) -> float:
    """The expected calibration error, in bins of equal width."""
    place = np.minimum((certainty * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, certainty - hits)
    return float(np.abs(gaps).sum() / len(hits))
