"""Author obfuscation, as in POST'19 but with more texts: the author goes; do the neighbours stay?

Of Reuters C50's unknown texts every tenth is privatised. The author is found by character 4-grams
and by the nearest document under the Earth Mover's distance. How many of a text's five nearest
documents are among those of the original stands for topics, which these texts do not have.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.measures import right
from experiments.post19 import bags_of, private_bags
from experiments.tables import Experiment, Run, Table
from fastdx import nearest_documents
from fastdx.bags import text_of
from fastdx.lab.evaluation import Attribution

EPSILONS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0)


def neighbours(run: Run, dim: int) -> Table:
    """Authors found and neighbours kept, over ε."""
    e = run.data.minilm(dim, run.of(40_000, 4000))
    texts, authors = (part[::10] for part in run.data.news("test"))
    news = run.data.news("train")
    known, originals = bags_of(e, news.texts), bags_of(e, texts)
    # The attacker knows the others' texts in the same representation: bags.
    attribution = Attribution([*map(text_of, known)], news.labels, known="together", weights="log")
    table = Table(
        f"POST'19, {len(texts)} texts of {len(set(authors))} authors, {dim} dimensions",
        ["ε", "author, 4-grams", "author, nearest", "neighbours kept", "words unchanged"],
        ylabel="share",
    )
    before = nearest_documents(originals, known, e, 5).ids
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in table.header[1:4]}

    def measured(epsilon: float | None) -> list[float]:
        bags = private_bags(e, epsilon, originals)
        grams = attribution.attribute([*map(text_of, bags)]).authors
        nearest = nearest_documents(bags, known, e, 5).ids
        named = np.array(news.labels)[nearest[:, 0]]
        kept = [len({*a} & {*b}) / 5 for a, b in zip(before, nearest, strict=True)]
        same = [(a & b).total() / a.total() for a, b in zip(originals, bags, strict=True)]
        shares = right(grams, authors), right(named, authors), kept, same
        return [float(np.mean(share)) for share in shares]

    for epsilon in (None, *run.of(EPSILONS, EPSILONS[:2])):
        shares = run.step(partial(measured, epsilon), dim, epsilon or "original")
        table.add("original" if epsilon is None else f"{epsilon:g}", *(f"{x:.3f}" for x in shares))
        if epsilon is not None:
            for curve, share in zip(curves.values(), shares, strict=False):
                curve.append((epsilon, share))
    for name, curve in curves.items():
        table.curve(name, curve, joined=True)
    return table


TABLES: dict[str, Experiment] = {f"{dim}d": partial(neighbours, dim=dim) for dim in (50, 300)}
