"""A readable text from a private bag (POST'19's next step): words and order found together."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

from experiments.data import Source, builtin
from experiments.measures import ids_of
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import BagOfWords, Tem
from fastdx.channel import Channel, NgramPrior, linearize
from fastdx.lab.evaluation import of_share

EPSILONS = (None, 2.6, 4.0, 6.0)
SHORTEST, LONGEST = 5, 12
"""Words of the requests that are measured."""


def _ordered(epsilon: float | None, source: Source, words: int, most: int) -> dict[str, Any]:
    """Words, and pairs of neighbours, that come back from bags."""
    e = builtin(words)
    plain, other = ([t.lower() for t in source.snips(part).texts] for part in ("validate", "train"))
    prior = NgramPrior.train(e, other, order=2)
    texts = [[e.words[i] for i in row] for row in ids_of(plain, e)
             if SHORTEST <= len(row) <= LONGEST][:most]  # fmt: skip
    channel = Channel.of(Tem(e, epsilon or 1.0, language="rank"))
    bags = BagOfWords(Tem(e, epsilon or 1.0, language="rank", seed=SEED))
    found: dict[str, Any] = {**dict.fromkeys(("words", "all", "alone", "near", "pairs"), 0),
                             "texts": len(texts)}  # fmt: skip
    for text in texts:
        bag, alone = Counter(sorted(text)), text
        if epsilon is None:
            order = linearize(bag, prior)
        else:
            posterior = channel.decode(bags.privatize(bag), prior)
            alone = [e.words[i] for i in posterior.best]
            order = linearize(posterior, prior, beam=200)
        found["all"] += len(text)
        found["pairs"] += len(text) - 1
        found["alone"] += (bag & Counter(alone)).total()
        found["words"] += (bag & Counter(order.words)).total()
        found["near"] += (Counter(pairwise(text)) & Counter(pairwise(order.words))).total()
        found.setdefault("first", order.text)
    return found


def order_table(run: Run) -> Table:
    words, most = run.of((20_000, 200), (2000, 20))
    table = Table("A text from a bag: requests to an assistant", [
        "bag", "words, one by one", "by the model [95%]", "neighbours [95%]", "the first one",
    ])  # fmt: skip
    for epsilon in EPSILONS:
        found = run.step(partial(_ordered, epsilon, run.data, words, most), "order",
                         epsilon or "plain", words, most)  # fmt: skip
        table.add("as written" if epsilon is None else f"private, ε = {epsilon:g}",
                  f"{found['alone'] / found['all']:.3f}", of_share(found["words"], found["all"]),
                  of_share(found["near"], found["pairs"]), found["first"])  # fmt: skip
    table.notes.append(
        f"{found['texts']} requests of Snips of {SHORTEST} to {LONGEST} known words, {words:,} "
        'built-in words. Tem with `language="rank"` releases each as a bag; `linearize` finds '
        "words and order together, by the bigrams of other requests. *Words*: of those written, "
        "those that come back; one by one, by `Posterior.best`, which knows only how often each "
        "word is written. *Neighbours*: of the pairs of neighbours as written, those that come "
        "back. One draw."
    )
    return table


TABLES: dict[str, Experiment] = {"order": order_table}
