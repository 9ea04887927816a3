"""Classifiers that learned from private texts, by task and size of the collection, behind the
recommended policy, on the built-in vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from experiments.data import Labelled, Source, builtin, split
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Tem
from fastdx.lab.evaluation import MeanVectors

DRAWS = 3
SIZES = (500, 2000, 6000)
LONGEST = 600
"""Characters of a text that are attacked."""


class Task(NamedTuple):
    """Texts to learn from and to test on; public ones that the attacker has, and those he reads."""

    learned: Labelled
    tested: Labelled
    public: list[str]
    attacked: list[str]


TASKS = {
    "snips": "requests to an assistant, seven intents (Snips)",
    "trec": "questions, six classes (TREC)",
    "imdb": "film reviews, good or bad (IMDB)",
}


def _texts(source: Source, name: str) -> tuple[Labelled, Labelled]:
    learned, tested = split(source, name)
    return learned, tested.some(2000)


def classifier(known: Labelled, e: Embedding) -> Any:
    """A classifier by words and by the mean of their vectors at once.

    Few private texts teach hardly any word, but vectors; many teach words that vectors do not tell
    apart.
    """
    # Rows of about length 1, as those of TF-IDF.
    shorter = FunctionTransformer(partial(np.multiply, e.dim**-0.5))
    vectors = make_pipeline(FunctionTransformer(MeanVectors(e)), StandardScaler(), shorter)
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+")
    judge = make_pipeline(make_union(words, vectors), LogisticRegression(max_iter=1000))
    return judge.fit(*known)


def _kept(
    source: Source, name: str, draw: int | None, words: int, sizes: Sequence[int]
) -> list[tuple[float, float]]:
    """Accuracies on plain and on private texts, learned from a draw's texts; by size."""
    known, asked = _texts(source, name)
    e = builtin(words)
    # One draw; a smaller collection is a part of a larger one.
    if draw is None:
        learned, private = known.lower(), asked.lower()
    else:
        m = Tem(e, Tem.recommended().nominal, language="rank", exclude="offensive",
                seed=SEED + draw)  # fmt: skip
        learned, private = known.private(m), asked.private(m)
    judges = (classifier(learned.some(size), e) for size in sizes)
    return [(float(judge.score(*asked)), float(judge.score(*private))) for judge in judges]


def sizes(run: Run) -> Table:
    """Accuracy by the number of private texts that a classifier learned from."""
    words, draws = run.of(len(Embedding.default()), 500), run.of(DRAWS, 1)
    table = Table(
        "What is kept grows with the collection",
        ["texts", "learned from", "plain → plain", "private → plain", "private → private"],
    )
    for name, title in TASKS.items():
        every = len(_texts(run.data, name)[0].texts)
        asked = run.of([*(s for s in SIZES if s < every), every], [every // 2, every])
        plain = np.array(run.ask(_kept, name, None, words, asked))[:, 0]
        found = np.array([run.ask(_kept, name, draw, words, asked) for draw in range(draws)])
        for i, size in enumerate(asked):
            shown = [f"{found[:, i, k].mean():.2f}" for k in range(2)]
            table.add(title if i == 0 else "", f"{size:,}", f"{plain[i]:.2f}", *shown)
    table.notes.append(
        "Accuracy of logistic regression on words (TF-IDF) and on the mean of the words' vectors, "
        f"behind `Tem.recommended()`; the mean of {draws} draws. *A → B*: learned from A, used on "
        "B."
    )
    return table


TABLES: dict[str, Experiment] = {"sizes": sizes}
