"""A readable text from a private bag (POST'19's next step): decoded, then put in order."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

from experiments.data import Source, builtin
from experiments.measures import ids_of
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import BagOfWords, Tem
from fastdx.bags import text_of
from fastdx.channel import Channel, NgramPrior, linearize
from fastdx.lab.evaluation import of_share

EPSILONS = (2.6, 4.0, 6.0)
LONGEST = 12
"""Words of the requests that are measured, at most; at least 5."""


def _shared(one: list[str], other: list[str]) -> tuple[int, int]:
    """How many words, and how many pairs of neighbours, two texts have in common."""
    neighbours = Counter(pairwise(one)) & Counter(pairwise(other))
    return (Counter(one) & Counter(other)).total(), neighbours.total()


def _ordered(epsilon: float | None, source: Source, words: int, most: int) -> dict[str, Any]:
    """Words and neighbours of texts that come back: in alphabetical order, and in the model's."""
    e = builtin(words)
    prior = NgramPrior.train(e, [t.lower() for t in source.snips("train").texts], order=2)
    texts = [[e.words[i] for i in row] for row in ids_of(
        (t.lower() for t in source.snips("validate").texts), e)]  # fmt: skip
    texts = [text for text in texts if 5 <= len(text) <= LONGEST][:most]
    tem = None if epsilon is None else Tem(e, epsilon, language="rank", seed=SEED)
    channel = None if epsilon is None else Channel.of(Tem(e, epsilon, language="rank"))
    found = {"words": 0, "alphabet": 0, "model": 0, "alone": 0}
    shown = []
    for text in texts:
        bag = Counter(sorted(text))
        if tem is None or channel is None:
            order = linearize(bag, prior)
        else:
            bag = BagOfWords(tem).privatize(bag)
            posterior = channel.decode(bag, prior)
            found["alone"] += _shared(text, [e.words[i] for i in posterior.best])[0]
            order = linearize(posterior, prior, beam=200)
        same, neighbours = _shared(text, list(order.words))
        found["words"] += same
        found["model"] += neighbours
        found["alphabet"] += _shared(text, text_of(bag).split())[1]
        shown.append(order.text)
    sums = {"texts": len(texts), "all": sum(map(len, texts)),
            "pairs": sum(len(text) - 1 for text in texts)}  # fmt: skip
    return {**found, **sums, "first": [" ".join(texts[0]), shown[0]]}


def order_table(run: Run) -> Table:
    words, most = run.of((20_000, 200), (2000, 20))
    table = Table(
        "A text from a bag: requests to an assistant",
        ["bag", "words, one by one", "by the model [95%]", "neighbours, by the alphabet",
         "by the model [95%]", "the first one"],
    )  # fmt: skip
    for epsilon in (None, *EPSILONS):
        measure = partial(_ordered, epsilon, run.data, words, most)
        found = run.step(measure, "order", epsilon or "plain", words, most)
        written, first = found["first"]
        if epsilon is None:
            table.add("written", "–", "–", "–", "–", written)
        table.add(
            "as written" if epsilon is None else f"private, ε = {epsilon:g}",
            "–" if epsilon is None else f"{found['alone'] / found['all']:.3f}",
            of_share(found["words"], found["all"]),
            f"{found['alphabet'] / found['pairs']:.3f}",
            of_share(found["model"], found["pairs"]), first,
        )  # fmt: skip
    table.notes.append(
        f"{found['texts']} requests of Snips of 5 to {LONGEST} known words, {words:,} built-in "
        'words. Tem with `language="rank"` releases each as a bag; `linearize` finds words and '
        "order together, by the bigrams of other requests. *Words*: of those written, those that "
        "come back; one by one, by `Posterior.best`, which knows only how often each word is "
        "written. *Neighbours*: of the pairs of "
        "neighbours as written, those that come back; by the alphabet, of the private bag itself. "
        "One draw."
    )
    return table


TABLES: dict[str, Experiment] = {"order": order_table}
