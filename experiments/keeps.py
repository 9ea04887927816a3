"""Classifiers that learned from private texts, beside an attacker who reads private sentences, by
task, size of the collection and policy, on the built-in vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.data import Labelled, Source, builtin, split
from experiments.measures import by_rank, tem
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Mechanism, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.lab.attacks import sentence_attack
from fastdx.lab.comparison import largest_epsilon
from fastdx.lab.evaluation import Interval, MeanVectors, over_trials

DRAWS = 2
SUMMARY_DRAWS = 5
"""Of the first screen: classifiers that learn from private questions differ much by draw."""
SIZES = (500, 2000, 6000)
LONGEST = 600
"""Characters of a text that are attacked."""


class Policy(NamedTuple):
    """Tem at an ε, on a balanced cover of k or on none."""

    epsilon: float
    k: int | None = None

    def __str__(self) -> str:
        cover = f", balanced cover of {self.k}" if self.k else ""
        return f"Tem, ε = {self.epsilon:g}{cover}"


RECOMMENDED = Policy(Tem.recommended().epsilon, Tem.recommended().spec["cover"])
POLICIES = (RECOMMENDED, Policy(3.0, 40), Policy(6.0, 40), Policy(2.66), Policy(3.0))


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


def _task(source: Source, name: str) -> Task:
    learned, tested = split(source, name)
    if name != "imdb":
        return Task(learned, tested, learned.texts, tested.texts)
    tested = tested.some(2000)
    return Task(learned, tested, source.imdb("val").texts,
                [t[:LONGEST] for t in tested.texts[::40]])  # fmt: skip


def _mechanism(policy: Policy, words: int, draw: int = 0) -> Mechanism:
    return tem(builtin(words), *policy, exclude="offensive", seed=SEED + draw)


@cache
def _language(source: Source, name: str, words: int) -> NgramPrior:
    return NgramPrior.train(builtin(words), _task(source, name).public)


def classifier(known: Labelled, e: Embedding) -> Any:
    """A classifier by words and by the mean of their vectors at once.

    Few private texts teach hardly any word, but vectors; many teach words that vectors do not tell
    apart.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    # Rows of about length 1, as those of TF-IDF.
    shorter = FunctionTransformer(partial(np.multiply, e.dim**-0.5))
    vectors = make_pipeline(FunctionTransformer(MeanVectors(e)), StandardScaler(), shorter)
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+")
    judge = make_pipeline(make_union(words, vectors), LogisticRegression(max_iter=1000))
    return judge.fit(known.texts, known.labels)


def _kept(
    task: Task, policy: Policy | None, words: int, draw: int, sizes: Sequence[int]
) -> list[tuple[float, float]]:
    """Accuracies on plain and on private texts, learned from private texts; by size."""
    e, texts = builtin(words), (task.learned.texts, task.tested.texts)
    # One draw; a smaller collection is a part of a larger one.
    if policy is None:
        learned, private = ([t.lower() for t in part] for part in texts)
    else:
        learned, private = map(_mechanism(policy, words, draw).privatize, texts)
    every, found = Labelled(learned, task.learned.labels), []
    for size in sizes:
        judge = classifier(every.some(size), e)
        found.append((float(judge.score(task.tested.texts, task.tested.labels)),
                      float(judge.score(private, task.tested.labels))))  # fmt: skip
    return found


def _leaks(source: Source, policy: Policy, words: int) -> dict[str, dict[str, float]]:
    """Attack the texts of each task; all of them share one pass over the laws."""
    m = _mechanism(policy, words)
    channel = Channel.of(m)
    found = {}
    for name in TASKS:
        model = _language(source, name, words)
        leak = sentence_attack(m, _task(source, name).attacked, model, channel=channel)
        found[name] = {"words": leak.words, "one": leak.alone.mean,
                       "sentences": leak.sentence.mean, "low": leak.sentence.low,
                       "high": leak.sentence.high}  # fmt: skip
    return found


class _Measures:
    """All measures of one task, each a step of the run."""

    def __init__(self, name: str, run: Run) -> None:
        self.name, self.run = name, run
        self.title, self.task = TASKS[name], _task(run.data, name)
        self.words = run.of(len(Embedding.default()), 500)
        every = len(self.task.learned.texts)
        self.sizes = run.of([*(s for s in SIZES if s < every), every], [every // 2, every])
        self.draws = run.of(DRAWS, 1)

    def kept(self, policy: Policy | None) -> NDArray[np.float64]:
        """Accuracies on plain and on private texts: shape (draws, sizes, 2)."""
        found = []
        for draw in range(self.draws if policy else 1):
            make = partial(_kept, self.task, policy, self.words, draw, self.sizes)
            asked = (*policy, self.words, draw) if policy else ("plain", self.words)
            found.append(self.run.step(make, self.name, *asked, *self.sizes))
        return np.array(found)

    def leaks(self, policy: Policy) -> dict[str, float]:
        make = partial(_leaks, self.run.data, policy, self.words)
        found: dict[str, float] = self.run.step(make, "leaks", *policy, self.words)[self.name]
        return found

    def attacker(self, words: float) -> str:
        return (
            f"The built-in vocabulary, {self.words:,} words. *Named*: content words of "
            f"{len(self.task.attacked):,} texts that nobody learned from, {words:,} in all, one "
            "guess among content words for each. The attacker knows the mechanism; his frequencies "
            f"and bigrams come from {len(self.task.public):,} plain texts of the same kind. *One "
            "by one*: each output by itself. *In sentences*: by the exact posterior given all "
            "outputs."
        )


def _table(name: str, run: Run) -> Table:
    m = _Measures(name, run)
    table = Table(
        f"Kept and leaked, {m.title}",
        ["policy", "named one by one", "named in sentences", "learn on private, use on",
         *(f"{s:,} texts" for s in m.sizes)],
        xlabel="content words named in sentences (exact posteriors)",
        ylabel="accuracy on plain texts",
    )  # fmt: skip
    table.add("plain text", "–", "–", "plain", *(f"{a:.2f}" for a in m.kept(None)[0, :, 0]))
    points: dict[bool, list[tuple[float, list[float]]]] = {True: [], False: []}
    spread, words = 0.0, 0.0
    for policy in run.of(POLICIES, POLICIES[::3]):
        leaks, kept = m.leaks(policy), m.kept(policy)
        words, spread = leaks["words"], max(spread, float(np.ptp(kept, axis=0).max()))
        mean = kept.mean(axis=0)
        shown = [str(policy), f"{leaks['one']:.1%}", f"{leaks['sentences']:.1%}"]
        table.add(*shown, "plain", *(f"{a:.2f}" for a in mean[:, 0]))
        table.add("", "", "", "private", *(f"{a:.2f}" for a in mean[:, 1]))
        points[policy.k is None].append((leaks["sentences"], mean[:, 0].tolist()))
    for i, size in enumerate(m.sizes):
        table.curve(f"covers, {size:,} texts", [(x, y[i]) for x, y in points[False]], joined=True)
    table.curve(f"Tem, {m.sizes[-1]:,} texts", [(x, y[-1]) for x, y in points[True]],
                joined=False)  # fmt: skip
    table.notes += [
        m.attacker(words),
        f"Accuracy on {len(m.task.tested.texts):,} texts that nobody learned from, mean of "
        f"{m.draws} draws, which differ by at most {spread:.2f}. Logistic regression on words "
        "(TF-IDF) and on the mean of the words' vectors together. Always saying the commonest "
        f"label: {m.task.tested.commonest():.2f}.",
    ]
    return table


def _equal_bits(k: int | None, words: int) -> list[float]:
    """The ε at which Tem, on a balanced cover of k or none, tells the bits of the recommended
    policy, and these bits; words are written by 1/(rank + 2.7)."""
    wanted = float(Channel.of(_mechanism(RECOMMENDED, words)).bits())
    if k == RECOMMENDED.k:
        return [RECOMMENDED.epsilon, wanted]
    made = _mechanism(Policy(1.0, k), words)

    def told(m: Mechanism) -> float:
        return float(Channel.of(m).bits())

    found = largest_epsilon(made.with_epsilon, told, wanted, (0.5, 8.0), 1e-3)
    assert found is not None
    epsilon = math.floor(found * 1000) / 1000
    return [epsilon, told(made.with_epsilon(epsilon))]


def _as_much(run: Run, words: int) -> dict[int | None, tuple[Policy, float]]:
    """The recommended policy and others that tell as many bits; the bits of each."""
    found = {k: run.step(partial(_equal_bits, k, words), "bits", k, words) for k in (40, 20, None)}
    return {k: (Policy(epsilon, k), bits) for k, (epsilon, bits) in found.items()}


def _headed(policies: Iterable[Policy]) -> list[str]:
    return [f"{p}{' (recommended)' * (p == RECOMMENDED)}" for p in policies]


def summary(run: Run) -> Table:
    """Accuracy of classifiers behind the recommended policy and others that tell as much."""
    measures = [_Measures(name, run) for name in TASKS]
    found = _as_much(run, measures[0].words)
    policies = [policy for policy, _ in found.values()]
    table = Table("Three policies that tell as much", ["", "plain text", *_headed(policies)])
    table.add("bits a word", "", *(f"{bits:.2f}" for _, bits in found.values()))
    for m in measures:
        # The largest collection.
        m.sizes, m.draws = m.sizes[-1:], run.of(SUMMARY_DRAWS, 2)
        kept = [m.kept(policy)[:, 0, 0] for policy in (None, *policies)]
        table.add(
            f"{m.title}, learned from {m.sizes[0]:,}: accuracy",
            f"{kept[0][0]:.2f}",
            *(_shown(over_trials(a.tolist(), within=(0.0, 1.0))) for a in kept[1:]),
        )
    table.notes.append(
        "*Bits a word*: what a release tells of a word at most on average, whoever reads it, words "
        "being written by 1/(rank + 2.7); a word has "
        f"{_entropy(measures[0].words):.1f}. *Accuracy*: of a classifier that learns from private "
        "texts and is used on plain ones; the mean of "
        f"{run.of(SUMMARY_DRAWS, 2)} releases, with a 95% interval."
    )
    return table


def leaks(run: Run) -> Table:
    """Words that an attacker of sentences names behind the same policies."""
    measures = [_Measures(name, run) for name in TASKS]
    policies = [policy for policy, _ in _as_much(run, measures[0].words).values()]
    table = Table("Content words named behind them", ["texts", *_headed(policies)])
    for m in measures:
        found = [m.leaks(policy) for policy in policies]
        named = [f"{x['sentences']:.1%} ({x['low']:.1%} to {x['high']:.1%})" for x in found]
        table.add(f"{m.title}: {found[0]['words']:,} words", *named)
    table.notes.append(
        "By an attacker who reads private sentences with the mechanism's law and a bigram model of "
        "such texts: exact posteriors, one guess among content words for each (95% over texts). A "
        "large language model names more; no reader learns more than the bits."
    )
    return table


def _shown(x: Interval) -> str:
    return f"{x.mean:.2f} ({x.low:.2f} to {x.high:.2f})"


def _entropy(words: int) -> float:
    """The bits of a word, by 1/(rank + 2.7)."""
    prior = by_rank(words)
    return float(-(prior @ np.log2(prior)))


TABLES: dict[str, Experiment] = {
    **{name: partial(_table, name) for name in TASKS},
    "summary": summary,
    "leaks": leaks,
}
