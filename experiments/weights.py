"""Tem with learned output weights, in use: near the limit for vectors, but for texts?

Weights c(y) by Blahut and Arimoto make the law Pr[y|w] ∝ c(y)·e^(-(ε/2)·d(w,y)) explain nearly as
much of a word's vector as any mechanism of as many bits (`experiments.nearer`). Here it stands
where `experiments.frontier` has the others: words named in sentences, and accuracy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments import frontier
from experiments.data import Source, builtin
from experiments.measures import Numbers, by_rank
from experiments.tables import Experiment, Run, Table
from fastdx import Cover, Embedding, Tem
from fastdx.channel import Channel

BITS = (2.0, 3.0)
ROUNDS = 5
LEAST = 1e-9


def _at_bits(e: Embedding, wanted: float) -> tuple[float, Numbers]:
    """ε at so many bits, and the weights that were learned for it."""
    v = e.vectors.astype(np.float32)
    squares = (v**2).sum(axis=1)
    d = np.sqrt(np.maximum(squares[:, None] + squares - 2 * v @ v.T, 0))
    prior = by_rank(len(e)).astype(np.float32)
    weights, low, high = prior.copy(), 0.5, 32.0
    while high / low > 1.05:
        epsilon = (low * high) ** 0.5
        kernel = np.exp(-epsilon / 2 * d)
        for _ in range(ROUNDS):
            weights *= (prior / (kernel @ weights)) @ kernel
            weights = np.maximum(weights, LEAST)
        law = kernel * weights
        law /= law.sum(axis=1, keepdims=True)
        np.log(np.maximum(law / (prior @ law), 1e-30), out=kernel)
        bits = float(prior @ (law * kernel).sum(axis=1)) / np.log(2)
        low, high = (epsilon, high) if bits < wanted else (low, epsilon)
    return low, weights.astype(np.float64)


def _measured(source: Source, wanted: float, size: frontier.Size) -> dict[str, Any]:
    e = builtin(size.words)
    epsilon, weights = _at_bits(e, wanted)
    m = Tem(e, epsilon, gamma=float("inf"), cover=Cover.identity(e).weighted(weights))
    channel = Channel.of(m)
    means, vectors = channel.posterior_means(), e.vectors.astype(np.float64)
    found: dict[str, Any] = {"epsilon": epsilon, "bits": float(channel.bits())}
    for task in frontier.TASKS:
        texts = frontier.task_texts(source, task)[1].texts[: size.attacked]
        (named,) = frontier.named_exactly(m, texts, frontier.public_texts(source, task), [2])
        raw, best = frontier.accuracies(source, task, e, [m], [vectors, means])
        found[task] = [named, raw, best]
    return found


def in_use(run: Run) -> Table:
    """Beside the first table of the frontier's built-in words."""
    size = run.of(
        frontier.Size(frontier.WORDS, 1, frontier.ATTACKED), frontier.Size(300, 1, 10)
    )  # fmt: skip
    table = Table(
        "Tem with learned weights, built in",
        ["ε", "bits a word", *(f"{title}: {part}" for title in frontier.TASKS.values()
                               for part in frontier.PARTS)],
    )  # fmt: skip
    for bits in run.of(BITS, BITS[:1]):
        found = run.step(partial(_measured, run.data, bits, size), bits, *size)
        cells = [str(frontier.Estimate(*x)) for task in frontier.TASKS for x in found[task]]
        table.add(f"{found['epsilon']:.2f}", f"{found['bits']:.2f}", *cells)
    table.notes.append(f"The {size.words:,} most frequent words, as in the frontier's table.")
    return table


TABLES: dict[str, Experiment] = {"in-use": in_use}
