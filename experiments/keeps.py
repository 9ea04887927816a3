"""What you keep, what leaks: classifiers learned from private text, and an attacker on sentences,
by task, size of the collection and policy, on the built-in vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.data import Labelled, Source
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Cover, Embedding, Mechanism, Tem
from fastdx.attacks import BigramModel, Likelihoods, LikelyInputs, sentence_attack
from fastdx.evaluation import text_classifier, vector_classifier

DRAWS = 2
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


RECOMMENDED = Policy(2.66)
POLICIES = (Policy(2.2), RECOMMENDED, Policy(3.0), Policy(2.25, 40), Policy(6.0, 40))


class Task(NamedTuple):
    """Texts to learn from and to test on; public ones that the attacker has, and those he reads."""

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
                [t[:LONGEST] for t in tested.texts[::40]])  # fmt: skip


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
def _cover(k: int, words: int) -> Cover:
    return Cover.balanced(_embedding(words), k)


def _mechanism(policy: Policy, words: int, draw: int = 0) -> Mechanism:
    cover = _cover(policy.k, words) if policy.k else None
    return Tem(_embedding(words), policy.epsilon, cover=cover, seed=SEED + draw)


@cache
def _language(source: Source, name: str, words: int) -> BigramModel:
    return BigramModel(_embedding(words), TASKS[name][1](source).public)


def _learned(known: Labelled, e: Embedding) -> Any:
    """The classifier, by words or by vectors, that does better on a third of the texts."""
    makers: list[Callable[..., Any]] = [text_classifier, partial(vector_classifier, embedding=e)]
    some = known.some(CHOSEN_BY)
    # Texts may be in order of their labels.
    held = some.at(range(0, len(some.texts), 3))
    rest = some.at([i for i in range(len(some.texts)) if i % 3])
    scores = [make(*rest).score(*held) for make in makers]
    return makers[int(np.argmax(scores))](*known)


def _kept(
    task: Task, policy: Policy | None, words: int, draw: int, sizes: Sequence[int]
) -> list[tuple[float, float]]:
    """Accuracies on plain and on private texts, learned from private texts; by size."""
    e = _embedding(words)
    make: Callable[[list[str]], list[str]] = (
        _mechanism(policy, words, draw).privatize if policy else _lower
    )
    # One draw; a smaller collection is a part of a larger one.
    every = Labelled(make(task.learned.texts), task.learned.labels)
    private = make(task.tested.texts)
    found = []
    for size in sizes:
        judge = _learned(every.some(size), e)
        found.append((float(judge.score(task.tested.texts, task.tested.labels)),
                      float(judge.score(private, task.tested.labels))))  # fmt: skip
    return found


def _lower(texts: list[str]) -> list[str]:
    return [t.lower() for t in texts]


def _leaks(source: Source, policy: Policy, words: int) -> dict[str, dict[str, float]]:
    """What is named of the texts of each task; all of them share one pass over the laws."""
    m = _mechanism(policy, words)
    inputs, exact = LikelyInputs.of(m), Likelihoods.of(m)
    found = {}
    for name, (_, load) in TASKS.items():
        model = _language(source, name, words)
        leak = sentence_attack(m, load(source).attacked, model, inputs=inputs, exact=exact)
        found[name] = {"words": leak.words, "one": leak.frequency, "sentences": leak.exact}
    return found


def _table(name: str, run: Run) -> Table:
    title, load = TASKS[name]
    task = load(run.data)
    words = run.of(len(Embedding.default()), 500)
    every = len(task.learned.texts)
    sizes = run.of([*(s for s in SIZES if s < every), every], [every // 2, every])
    draws, policies = run.of((DRAWS, POLICIES), (1, POLICIES[1:5:3]))
    table = Table(
        f"Kept and leaked: {title}",
        ["policy", "named one by one", "named in sentences", "learn on private, use on",
         *(f"{s:,} texts" for s in sizes)],
        xlabel="content words named in sentences (exact posteriors)",
        ylabel="accuracy on plain texts",
    )  # fmt: skip
    plain = run.step(partial(_kept, task, None, words, 0, sizes), name, "plain", words, *sizes)
    table.add("plain text", "–", "–", "plain", *(f"{a:.2f}" for a, _ in plain))
    points: dict[bool, list[tuple[float, list[float]]]] = {True: [], False: []}
    spread, leaks = 0.0, {"words": 0}
    for policy in policies:
        asked = (*policy, words)
        leaks = run.step(partial(_leaks, run.data, policy, words), "leaks", *asked)[name]
        kept = np.array(
            [
                run.step(
                    partial(_kept, task, policy, words, draw, sizes), name, *asked, draw, *sizes
                )
                for draw in range(draws)
            ]
        )
        spread = max(spread, float(np.ptp(kept, axis=0).max()))
        mean = kept.mean(axis=0)
        for use, column in (("plain", 0), ("private", 1)):
            shown = [str(policy), f"{leaks['one']:.1%}", f"{leaks['sentences']:.1%}"]
            table.add(*(shown if use == "plain" else ["", "", ""]), use,
                      *(f"{a:.2f}" for a in mean[:, column]))  # fmt: skip
        points[policy.k is None].append((leaks["sentences"], mean[:, 0].tolist()))
    for i, size in enumerate(sizes):
        table.curve(f"Tem, {size:,} texts", [(x, y[i]) for x, y in points[True]], joined=True)
    table.curve(f"balanced covers, {sizes[-1]:,} texts", [(x, y[-1]) for x, y in points[False]],
                joined=False)  # fmt: skip
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
