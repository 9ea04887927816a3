"""Measure how much a policy of Tem gives away and keeps, on three spaces, step by step.

A policy is a base measure (uniform; frequency, counts of IMDB's training reviews; or rank,
1/(rank + 2.7)), a balanced cover of 0, 10 or 40, and an ε in the unit of the built-in words; on
another space ε is multiplied by the ratio of the median distances to the nearest word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from experiments import frontier
from experiments.data import Labelled, Source, builtin, first, split
from experiments.keeps import LONGEST, Task, classifier
from experiments.measures import Numbers, right, tem
from experiments.releases import plain
from experiments.tables import Run
from fastdx import Embedding, FiniteLaw, Mechanism, Tem
from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import PrivateTexts

SPACES = ("builtin", "minilm", "glove")
TASKS = ("snips", "trec", "mr", "imdb")
ORDERS = (1, 2, 3)
BANDS = ("function", "frequent", "rare")
RARE = 3000
"""Content words from this rank on are rare."""
NAMES = (
    "anna", "maria", "ahmed", "peter", "sarah", "kevin", "smith", "garcia", "johnson", "patel",
    "cancer", "diabetes", "asthma", "hepatitis", "hiv", "epilepsy", "leukemia", "depression",
    "malaria", "tuberculosis",
)  # fmt: skip
"""Names of people and diseases."""
COLUMNS = 2**32
"""Bytes of columns that a channel keeps: all of 20,000 words."""


class Policy(NamedTuple):
    """Tem with a base measure, on a balanced cover (0: none), at an ε for the built-in words."""

    base: str
    cover: int
    epsilon: float

    def __str__(self) -> str:
        return f"{self.base}, {f'cover {self.cover}' if self.cover else 'no cover'}, {self.epsilon}"


BEFORE = Policy("uniform", 40, 2.25)
"""The policy that was recommended before this was measured: no other may give away more."""


class Size(NamedTuple):
    """How much is measured."""

    words: int = 20_000
    rare: int = RARE
    learned: int = 20_000
    tested: int = 2000
    attacked: int = 500
    """Short texts; of longer ones fewer, by `LONGER`."""


LONGER = {"mr": 2, "imdb": 20}
QUICK = Size(300, 100, 150, 60, 20)


@cache
def space_of(source: Source, name: str, words: int) -> Embedding:
    if name == "builtin":
        return builtin(words)
    return first(source.minilm(300, words) if name == "minilm" else source.large_glove(words),
                 words)  # fmt: skip


@cache
def unit(source: Source, name: str, words: int) -> float:
    """The ratio of distances to nearest words, by which ε for the built-in words is multiplied."""

    def nearest(e: Embedding) -> float:
        ids = np.random.default_rng(0).choice(len(e), min(1000, len(e)), replace=False)
        return float(np.median(e.nearest(e.vectors[ids], 2)[1][:, 1]))

    return round(nearest(builtin(words)) / nearest(space_of(source, name, words)), 3)


def _reviews(source: Source, part: str) -> Labelled:
    """Without HTML: a base with "br" in it would make a word of it that hardly ever changes."""
    found = source.texts("imdb", part)
    return found._replace(texts=[*map(plain, found.texts)])


@cache
def frequencies(source: Source, name: str, words: int) -> Numbers:
    """Public: of IMDB's training reviews, which no task has."""
    space = space_of(source, name, words)
    return NgramPrior.train(space, _reviews(source, "train").texts, 1).frequencies


@cache
def task_of(source: Source, name: str, size: Size) -> Task:
    """Texts to learn from and to test on, those that an attacker knows, and those he reads."""
    if name == "mr":
        learned, tested = frontier.task_texts(source, name)
    elif name == "imdb":
        # Training reviews are the public ones. Reviews stand in the order of their label.
        every = _reviews(source, "test")
        order = np.random.default_rng(0).permutation(len(every.texts)).tolist()
        tested = every.at(order[: min(size.tested, len(order) // 3)])
        learned = every.at(order[len(tested.texts) :][: 2 * size.tested])
    else:
        learned, tested = split(source, name)
    learned, tested = learned.some(size.learned), tested.some(size.tested)
    public = _reviews(source, "val").texts if name == "imdb" else learned.texts
    read = tested.some(size.attacked // LONGER.get(name, 1)).texts
    return Task(learned, tested, public, [t[:LONGEST] for t in read])


@cache
def _models(source: Source, space: str, task: str, size: Size) -> list[NgramPrior]:
    public = task_of(source, task, size).public
    e = space_of(source, space, size.words)
    return [NgramPrior.train(e, public, order) for order in ORDERS]


def _author_judge(known: Labelled) -> Any:
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+")
    return make_pipeline(words, LinearSVC()).fit(*known)


@cache
def _news(source: Source, size: Size) -> tuple[Labelled, Labelled]:
    known, asked = split(source, "news")
    return known.some(size.learned), asked.some(size.learned)


@cache
def _clear_judge(source: Source, size: Size) -> Any:
    return _author_judge(_news(source, size)[0].lower())


def clear(source: Source, space: str, task: str, size: Size) -> list[float]:
    """The accuracy on plain texts of what learned from plain texts; that of the commonest label."""
    t = task_of(source, task, size)
    judge = classifier(t.learned.lower(), space_of(source, space, size.words))
    return [float(judge.score(*t.tested.lower())), t.tested.commonest()]


class Cell:
    """A policy on a space. What it is made of is made when a step that is not kept wants it."""

    def __init__(self, run: Run, space: str, policy: Policy, size: Size) -> None:
        self.run, self.name, self.policy, self.size = run, space, policy, size
        self.source = run.data

    @cached_property
    def space(self) -> Embedding:
        return space_of(self.source, self.name, self.size.words)

    @cached_property
    def base(self) -> Numbers:
        return frequencies(self.source, self.name, self.size.words)

    @cached_property
    def mechanism(self) -> Tem:
        scaled = round(self.policy.epsilon * unit(self.source, self.name, self.size.words), 4)
        bases = {"uniform": None, "frequency": self.base, "rank": "rank"}
        base, k = bases[self.policy.base], self.policy.cover or None
        return tem(self.space, scaled, k, language=base, exclude="offensive")

    @cached_property
    def channel(self) -> Channel:
        of: Mechanism = self.mechanism
        if self.policy.cover:
            # Its columns take long, its rows do not: a pass over these makes all columns.
            words, probabilities = self.space.words, self.mechanism.probabilities
            of = FiniteLaw(self.space, lambda w: probabilities(words[w]), certify=False)
        return Channel.of(of, cache_bytes=COLUMNS)

    @cached_property
    def bands(self) -> NDArray[np.int64]:
        """The place in `BANDS` of every word."""
        rare = 1 + (np.arange(len(self.space)) >= self.size.rare)
        return np.where(np.isin(self.space.words, [*STOP_WORDS]), 0, rare)

    @cached_property
    def named(self) -> NDArray[np.bool_]:
        """Whether every word is in `NAMES`."""
        return np.isin(self.space.words, [*NAMES])

    def law(self) -> dict[str, Any]:
        """Bits and the probability that a word stays, by band: sums over the law of every word."""
        count = len(self.space)
        same, told, shown = np.zeros(count), np.zeros(count), np.zeros((len(BANDS), count))
        for i, word in enumerate(self.space.words):
            row = self.mechanism.probabilities(word)
            some = row[row > 0]
            same[i], told[i] = row[i], some @ np.log2(some)
            shown[self.bands[i]] += self.base[i] * row
        out = np.log2(np.maximum(shown.sum(axis=0), 1e-300))
        parts = [self.bands == b for b in range(len(BANDS))]
        bits = [float(self.base[p] @ told[p] - s @ out) for p, s in zip(parts, shown, strict=True)]
        found = {name: {"bits": b / float(self.base[p].sum()), "same": float(same[p].mean())}
                 for name, p, b in zip(BANDS, parts, bits, strict=True)}  # fmt: skip
        worst = int(same.argmax())
        names = float(same[self.named].mean()) if self.named.any() else 0.0
        return {"bits": sum(bits), "bands": found, "names": names, "worst": float(same[worst]),
                "worst word": self.space.words[worst],
                "epsilon": self.mechanism.epsilon}  # fmt: skip

    def attack(self, task: str, draw: int) -> dict[str, list[Any]]:
        """Words of each text that are counted, and named by chains of each order: by band.

        The attacker names content words, since only these are counted; function words by bigrams,
        among function words, of the first draw.
        """
        texts = task_of(self.source, task, self.size).attacked
        release = PrivateTexts(self.mechanism, texts)
        written, content = release.written, release.content
        known = np.where(written >= 0, written, 0)
        chosen = {"content": content, "rare": content & (self.bands[known] == 2),
                  "names": content & self.named[known]}  # fmt: skip

        def per_text(words: NDArray[np.bool_]) -> list[int]:
            return np.bincount(release.text[words], minlength=release.texts).tolist()

        models = _models(self.source, self.name, task, self.size)
        hits = [release.best(self.channel, model) == written for model in models]
        found = {name: [per_text(words), *(per_text(words & hit) for hit in hits)]
                 for name, words in chosen.items()}  # fmt: skip
        if draw == 0:
            words = (written >= 0) & (self.bands[known] == 0)
            best = release.best(self.channel, models[1],
                                [w for w in self.space.words if w in STOP_WORDS])  # fmt: skip
            found["function"] = [per_text(words), per_text(words & (best == written))]
        return found

    def use(self, task: str) -> list[float]:
        """The accuracy on plain and on private texts of what learned from private ones."""
        t = task_of(self.source, task, self.size)
        judge = classifier(t.learned.private(self.mechanism), self.space)
        asked = t.tested.lower(), t.tested.private(self.mechanism)
        return [float(judge.score(*texts)) for texts in asked]

    def authors(self) -> list[list[int]]:
        """Which private texts' authors are found, learned from private and from clear texts."""
        known, asked = _news(self.source, self.size)
        texts = asked.private(self.mechanism).texts
        judges = (_author_judge(known.private(self.mechanism)),
                  _clear_judge(self.source, self.size))  # fmt: skip
        return [right(judge.predict(texts), asked.labels).astype(int).tolist() for judge in judges]

    def measured(self, draws: int) -> tuple[Any, Any, list[Any]]:
        """Do all steps, or take what was kept: of clear texts, of the law, and of each draw."""

        def step(make: Callable[[], Any], *parts: Any) -> Any:
            policy = () if parts[0] == "clear" else self.policy
            asked = (self.name, *policy, *parts, *self.size)
            return self.run.step(make, *asked, code="policies")

        plain = {task: step(partial(clear, self.source, self.name, task, self.size), "clear", task)
                 for task in TASKS}  # fmt: skip
        law, made = step(self.law, "law"), []
        for draw in range(draws):
            found = {("authors",): step(self.authors, "authors", draw)}
            for task in TASKS:
                found["attack", task] = step(partial(self.attack, task, draw), "attack", task, draw)
                found["use", task] = step(partial(self.use, task), "use", task, draw)
            made.append(found)
        return plain, law, made
