"""What you keep, what leaks: classifiers learned from private text, beside an attacker on sentences.

By task, size of the collection and policy, on the built-in vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.data import Labelled, Source
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Cover, Embedding, Mechanism, Tem
from fastdx.attacks import BigramModel, LikelyInputs, sentence_attack
from fastdx.evaluation import text_classifier, vector_classifier

DRAWS = 3
SIZES = (500, 2000, 6000)
LONGEST = 600
"""Characters of a text that are attacked."""
CHOSEN_BY = 3000
"""Private texts, at most, by which one of the two classifiers is chosen."""


class Policy(NamedTuple):
    """Tem at an ε, on a balanced cover of k or on none."""

    epsilon: float
    k: int | None = None

    def __str__(self) -> str:
        cover = f", balanced cover of {self.k}" if self.k else ""
        return f"Tem, ε = {self.epsilon:g}{cover}"


POLICIES = (Policy(2.2), Policy(2.66), Policy(2.8), Policy(3.2), Policy(6.0, 40))


class Task(NamedTuple):
    """Texts to learn from and to test on; public texts that the attacker has, and those he reads."""

    learned: Labelled
    tested: Labelled
    public: list[str]
    attacked: list[str]


def _snips(source: Source) -> Task:
    learned, tested = source.snips("train"), source.snips("validate")
    return Task(learned, tested, learned.texts, tested.texts)


def _trec(source: Source) -> Task:
    learned, tested = source.sentences("trec")
    assert tested is not None
    return Task(learned, tested, learned.texts, tested.texts)


def _imdb(source: Source) -> Task:
    tested = source.imdb("test").some(2000)
    return Task(source.imdb("train"), tested, source.imdb("val").texts,
                [t[:LONGEST] for t in tested.texts[::20]])  # fmt: skip


TASKS: dict[str, tuple[str, Callable[[Source], Task]]] = {
    "snips": ("requests to an assistant, seven intents (Snips)", _snips),
    "trec": ("questions, six classes (TREC)", _trec),
    "imdb": ("film reviews, good or bad (IMDB)", _imdb),
}


@cache
def _embedding(words: int) -> Embedding:
    e = Embedding.default()
    return e if words >= len(e) else Embedding(e.words[:words], e.vectors[:words])


@cache
def _mechanism(policy: Policy, words: int) -> Mechanism:
    e = _embedding(words)
    cover = Cover.balanced(e, policy.k) if policy.k else None
    return Tem(e, policy.epsilon, cover=cover, seed=SEED)


@cache
def _inputs(policy: Policy, words: int) -> LikelyInputs:
    return LikelyInputs.of(_mechanism(policy, words))


def _learned(known: Labelled, e: Embedding) -> Any:
    """The classifier, by words or by vectors, that does better on a third of the texts."""
    some = known.some(CHOSEN_BY)
    third = len(some.texts) // 3
    held, rest = some.at(range(third)), some.at(range(third, len(some.texts)))

    def makers() -> list[Callable[..., Any]]:
        return [text_classifier, partial(vector_classifier, embedding=e)]

    scores = [make(*rest).score(*held) for make in makers()]
    return makers()[int(np.argmax(scores))](*known)


def _kept(
    task: Task, m: Mechanism | None, e: Embedding, sizes: Sequence[int]
) -> list[tuple[float, float]]:
    """Accuracies on plain and on private texts, learned from private texts; by size."""
    make = m.privatize if m else lambda texts: [t.lower() for t in texts]
    # One draw; a smaller collection is a part of a larger one.
    every = Labelled(make(task.learned.texts), task.learned.labels)
    private = make(task.tested.texts)
    found = []
    for size in sizes:
        judge = _learned(every.some(size), e)
        found.append((float(judge.score(task.tested.texts, task.tested.labels)),
                      float(judge.score(private, task.tested.labels))))  # fmt: skip
    return found


def _leaks(task: Task, policy: Policy, words: int) -> dict[str, float]:
    m = _mechanism(policy, words)
    model = BigramModel(m.space, task.public)
    found = sentence_attack(m, task.attacked, model, inputs=_inputs(policy, words), exact=True)
    return {"words": found.words, "one": found.frequency, "sentences": found.exact,
            "unchanged": found.unchanged}  # fmt: skip


def _table(name: str, run: Run) -> Table:
    title, load = TASKS[name]
    task = load(run.data)
    words = run.of(len(Embedding.default()), 500)
    every = len(task.learned.texts)
    sizes = run.of([*(s for s in SIZES if s < every), every], [every // 2, every])
    draws, policies = run.of((DRAWS, POLICIES), (1, POLICIES[-2:]))
    e = _embedding(words)
    table = Table(
        f"Kept and leaked: {title}",
        ["policy", "named one by one", "named in sentences", "learn on private, use on",
         *(f"{s:,} texts" for s in sizes)],
        xlabel="content words named in sentences (exact posteriors)",
        ylabel="accuracy on plain texts",
    )  # fmt: skip
    plain = run.step(lambda: _kept(task, None, e, sizes), name, "plain", words, *sizes)
    table.add("plain text", "–", "–", "plain", *(f"{a:.2f}" for a, _ in plain))
    points: list[tuple[float, list[float]]] = []
    spread, leaks = 0.0, {"words": 0}
    for policy in policies:
        asked = (name, *policy, words)
        leaks = run.step(partial(_leaks, task, policy, words), "leaks", *asked)
        m = _mechanism(policy, words)
        kept = np.array([run.step(partial(_kept, task, m, e, sizes), "kept", *asked, draw, *sizes)
                         for draw in range(draws)])  # fmt: skip
        spread = max(spread, float(np.ptp(kept, axis=0).max()))
        mean = kept.mean(axis=0)
        for use, column in (("plain", 0), ("private", 1)):
            shown = [str(policy), f"{leaks['one']:.1%}", f"{leaks['sentences']:.1%}"]
            table.add(*(shown if use == "plain" else ["", "", ""]), use,
                      *(f"{a:.2f}" for a in mean[:, column]))  # fmt: skip
        points.append((leaks["sentences"], mean[:, 0].tolist()))
    points.sort()
    for i, size in enumerate(sizes):
        table.plain_line(f"{size:,} texts", [x for x, _ in points], [y[i] for _, y in points])
    commonest = max(map(task.tested.labels.count, set(task.tested.labels)))
    table.notes += [
        f"The built-in vocabulary, {words:,} words. *Named*: content words of "
        f"{len(task.attacked):,} texts that nobody learned from, {leaks['words']:,} in all, one "
        "guess for each. The attacker knows the mechanism; his frequencies and bigrams come from "
        f"{len(task.public):,} plain texts of the same kind. *One by one*: each output by itself. "
        "*In sentences*: by the exact posterior given all outputs.",
        f"Accuracy on {len(task.tested.texts):,} texts that nobody learned from, mean of {draws} "
        f"draws, which differ by at most {spread:.2f}. Of two classifiers, by words (TF-IDF) and "
        "by the mean of the words' vectors, the one that does better on private texts held out. "
        f"Always saying the commonest label: {commonest / len(task.tested.labels):.2f}.",
    ]
    return table


TABLES: dict[str, Experiment] = {name: partial(_table, name) for name in TASKS}
