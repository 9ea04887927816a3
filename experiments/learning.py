"""Learning from private text: replacement vectors as they are, or what is to be expected of them.

The thresholds, written down before the first run:

- *ChannelNB* (`bayes`): it stays in the library if, at 2 bits, on one task at least, the mean over
  the mechanisms of its accuracy on private text is above that of every other column.
- *Search* (`search`): with posterior means the mean reciprocal rank at home is above that of raw
  vectors, the interval of the difference above 0, for each of the three mechanisms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from experiments.data import Labelled, Source, first, split
from experiments.measures import Numbers, by_rank, epsilon_of_bits, mean_of, right, tem
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Mechanism
from fastdx.channel import Channel
from fastdx.channel.features import TextFeatures
from fastdx.engines.sklearn import ChannelNB, counted
from fastdx.lab.evaluation import Interval

WORDS, DIM = 4000, 300
LEVELS = (2.0, 3.0)
DRAWS = 2
KS = (None, 20, 40)
QUERIES = 500
FETCHED = 100

NAMES = {
    "trec": dict(zip("012345", ("description", "entity", "abbreviation", "human", "location",
                                "number"), strict=True)),
    "snips": {},
    "sst2": {"0": "bad", "1": "good"},
}  # fmt: skip
"""The meaning of the labels, which a public model needs; Snips' intents say it themselves."""


def _task(source: Source, name: str) -> tuple[Labelled, Labelled]:
    """Texts to learn from, and to test on."""
    learned, tested = split(source, name)
    return learned.some(5000) if name == "snips" else learned, tested


TASKS = {"trec": "questions (TREC)", "snips": "requests (Snips)",
         "sst2": "sentences of film reviews (SST-2)"}  # fmt: skip


@cache
def _space(source: Source, words: int) -> Embedding:
    return first(source.minilm(DIM, words), words)


def _at(e: Embedding, k: int | None, epsilon: float, draw: int = 0) -> Mechanism:
    return tem(e, epsilon, k, seed=SEED + draw)


def _judge(x: Any, labels: list[str]) -> Any:
    """A linear classifier: standardised features, logistic regression."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200)).fit(x, labels)


def _right(found: list[str], labels: list[str]) -> list[int]:
    return right(found, labels).astype(int).tolist()


def _public(source: Source, name: str, words: int) -> dict[str, Any]:
    """Which texts public models alone classify right.

    The commonest label; and that whose name's vector is nearest to the text's.
    """
    e, (learned, tested) = _space(source, words), _task(source, name)
    features = TextFeatures(Channel.of(_at(e, None, 1.0)))
    labels = sorted(set(learned.labels))
    most = max(labels, key=learned.labels.count)
    said = [NAMES[name].get(c, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", c).lower()) for c in labels]
    middle = np.asarray(e.vectors, dtype=np.float64).mean(axis=0)
    names = normalize(features.of_clear(said) - middle)
    nearest = ((features.of_clear(tested.texts) - middle) @ names.T).argmax(axis=1)
    return {"most": _right([most] * len(tested.labels), tested.labels),
            "named": _right([labels[i] for i in nearest], tested.labels)}  # fmt: skip


def _learn(
    source: Source, name: str, words: int, policy: tuple[int | None, float], draws: int
) -> dict[str, list[float]]:
    """Which texts are classified right, by the classifier and by what it is tested on."""
    e, (task, tested) = _space(source, words), _task(source, name)
    channel, known = Channel.of(_at(e, *policy)), task.labels
    features = TextFeatures(channel)
    found: dict[str, Numbers] = {}
    for draw in range(draws):
        made = _at(e, *policy, draw)
        learned, private = (made.privatize(part.texts) for part in (task, tested))
        raw = _judge(features.of_clear(learned), known)
        mean = _judge(features(learned), known)
        counts = [counted(channel, texts) for texts in (learned, private, tested.texts)]
        plain = MultinomialNB().fit(counts[0], known)
        through = ChannelNB(channel).fit(learned, known)
        answers = {
            "raw, private": raw.predict(features.of_clear(private)),
            "mean, private": mean.predict(features(private)),
            "mean, clear": mean.predict(features.of_clear(tested.texts)),
            "bayes, private": plain.predict(counts[1]),
            "bayes, clear": plain.predict(counts[2]),
            "law, private": through.predict(private),
            "law, clear": through.predict_clear(tested.texts),
        }
        for key, answer in answers.items():
            found[key] = found.get(key, 0.0) + np.array(_right(answer, tested.labels)) / draws
    return {key: value.tolist() for key, value in found.items()}


def _points_of(x: Interval) -> str:
    """A mean and its interval, in points."""
    return f"{x.mean * 100:+.1f} ({x.low * 100:+.1f} to {x.high * 100:+.1f})"


class _Point(NamedTuple):
    """Tem on a balanced cover of k, or on none, at so many bits a word."""

    bits: float
    policy: tuple[int | None, float]
    """k and ε."""

    def __str__(self) -> str:
        k, _ = self.policy
        return "Tem" if k is None else f"Tem, cover of {k}"


def _points(run: Run, words: int) -> Iterator[_Point]:
    """All mechanisms at all levels; each ε is a step of the run."""
    for bits, k in product(run.of(LEVELS, LEVELS[:1]), run.of(KS, (None, 20))):
        make = partial(_at, _space(run.data, words), k)
        epsilon = run.step(partial(epsilon_of_bits, make, bits), "epsilon", k, bits, words)
        yield _Point(bits, (k, epsilon))


def _arrays(found: dict[str, Any]) -> dict[str, Numbers]:
    return {key: np.array(value) for key, value in found.items()}


def _pair(found: dict[str, Numbers], first: str, second: str) -> list[str]:
    """Two accuracies, and the gain of the second: on private texts, and on clear ones."""
    cells = []
    for kind in ("private", "clear"):
        one, other = found[f"{first}, {kind}"], found[f"{second}, {kind}"]
        cells += [f"{one.mean():.2f}", f"{other.mean():.2f}", _points_of(mean_of(other - one))]
    return cells


def _both(found: dict[str, Numbers], private: str, clear: str) -> str:
    """Two accuracies in a cell."""
    return f"{found[private].mean():.2f} / {found[clear].mean():.2f}"


def _collection(source: Source) -> tuple[list[str], list[str]]:
    """News and their first sentences, which are left out of the news."""
    parts = [
        re.split(r"(?<=[.!?])\s+", text, maxsplit=1) for text in source.texts("news", "test").texts
    ]
    whole = [part for part in parts if len(part) == 2]
    if not whole:
        texts = [text.split() for text in source.texts("news", "test").texts]
        whole = [[" ".join(words[:10]), " ".join(words[10:])] for words in texts]
    return [part[1] for part in whole], [part[0] for part in whole]


def _search(
    source: Source, words: int, policy: tuple[int | None, float], draws: int
) -> dict[str, list[float]]:
    """Of each query: whether its document was fetched, and 1 over its rank; by kinds of query."""
    e = _space(source, words)
    documents, sentences = _collection(source)
    asked = np.sort(np.random.default_rng(SEED).permutation(len(sentences))[:QUERIES])
    queries = [sentences[i] for i in asked]
    features = TextFeatures(Channel.of(_at(e, *policy)))
    served = features.of_clear(documents)
    served = normalize(served - served.mean(axis=0))
    middle = by_rank(len(e)) @ np.asarray(e.vectors, dtype=np.float64)
    index = TfidfVectorizer(sublinear_tf=True)
    home = np.asarray((index.fit_transform(documents) @ index.transform(queries).T).todense()).T
    found: dict[str, Numbers] = {"best": 1 / (1 + _before(home, asked))}

    most = min(FETCHED, len(documents) // 4)

    def put(kind: str, scores: Numbers) -> None:
        place = _before(scores, asked)
        fetched = place < most
        top = np.argsort(-scores, axis=1, kind="stable")[:, :most]
        rank = [np.sum(home[i, top[i]] > home[i, asked[i]]) for i in range(len(asked))]
        values = {"fetched": fetched, "server": 1 / (1 + place),
                  "home": fetched / (1 + np.array(rank))}  # fmt: skip
        for name, value in values.items():
            key = f"{kind}, {name}"
            found[key] = found.get(key, 0.0) + value / draws

    for draw in range(draws):
        private = _at(e, *policy, draw).privatize(queries)
        put("raw", normalize(features.of_clear(private) - middle) @ served.T)
        put("mean", normalize(features(private) - middle) @ served.T)
        put("clear", normalize(features.of_clear(queries) - middle) @ served.T)
        put("none", np.tile(np.random.default_rng(draw).random(len(documents)), (len(asked), 1)))
    return {key: np.asarray(value, dtype=float).tolist() for key, value in found.items()}


def _before(scores: Numbers, asked: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many documents stand before the right one; a tie counts as lost."""
    own = scores[np.arange(len(asked)), asked]
    return (scores >= own[:, None]).sum(axis=1) - 1


def search(run: Run) -> Table:
    """Queries that were privatised; documents ranked at home by the true query."""
    words, draws = run.of(WORDS, 300), run.of(DRAWS, 1)
    table = Table(
        "Searched by a private query, ranked at home by the true one",
        ["bits a word", "mechanism", "fetched: raw", "posterior", "MRR at home: raw", "posterior",
         "gain, of 100", "MRR without home: raw", "posterior"],
    )  # fmt: skip
    won, level, found = [], LEVELS[0], {}
    for point in _points(run, words):
        found = _arrays(run.ask(_search, words, point.policy, draws))
        gain = mean_of(found["mean, home"] - found["raw, home"])
        cells = [f"{found[f'{kind}, {name}'].mean():.2f}"
                 for name in ("fetched", "home", "server") for kind in ("raw", "mean")]  # fmt: skip
        table.add(f"{point.bits:g}", point, *cells[:4], _points_of(gain), *cells[4:])
        if point.bits == level:
            won.append(gain.low > 0)
    for title, kind in (("clear query", "clear"), ("no query", "none")):
        cells = [f"{found[f'{kind}, {name}'].mean():.2f}" for name in ("fetched", "home", "server")]
        table.add("–", title, cells[0], "–", cells[1], "–", "–", cells[2], "–")
    documents, _ = _collection(run.data)
    most = min(FETCHED, len(documents) // 4)
    table.notes += [
        f"{len(documents):,} news (Reuters C50, test) without their first sentences; "
        f"{len(found['best']):,} of those sentences are the queries, and each wants its own "
        f"document. A server fetches the {most} documents whose mean "
        "vectors are nearest (cosine) to the query's: the mean of its released words' vectors, or "
        "of what is to be expected of the written ones. At home they are ranked by TF-IDF and the "
        f"true sentence; of all documents that has an MRR of {found['best'].mean():.2f}. "
        f"*No query*: a random {most}. *Fetched*: the wanted one is "
        "among them.",
        f"Threshold, written down before: at {level:g} bits the gain at home is above 0, with its "
        f"interval, for every mechanism. Reached by {sum(won)} of {len(won)}.",
    ]
    return table


ALONE = "language model alone, no release: private / clear"
"""The column beside every figure."""
ALONE_NOTE = (
    "*Language model alone*: who has only public models. Of a private text he knows nothing, and "
    "says the commonest label; a clear text he gives the label whose name's vector is nearest."
)


def bayes(run: Run) -> Table:
    """Naive Bayes, on outputs and through the law."""
    words, draws = run.of(WORDS, 300), run.of(DRAWS, 1)
    table = Table(
        "Naive Bayes on outputs, and through the law by EM",
        ["texts", "bits a word", "mechanism", "private: on outputs", "by EM", "gain, points",
         "clear: on outputs", "by EM", "gain, points", "posterior features: private / clear",
         ALONE],
    )  # fmt: skip
    won = []
    for name, title in TASKS.items():
        alone = _both(_arrays(run.ask(_public, name, words)), "most", "named")
        means: dict[str, list[float]] = {}
        for point in _points(run, words):
            found = _arrays(run.ask(_learn, name, words, point.policy, draws))
            table.add(title, f"{point.bits:g}", point, *_pair(found, "bayes", "law"),
                      _both(found, "mean, private", "mean, clear"), alone)  # fmt: skip
            if point.bits == LEVELS[0]:
                for key in ("raw", "mean", "bayes", "law"):
                    means.setdefault(key, []).append(float(found[f"{key}, private"].mean()))
        total = {key: float(np.mean(values)) for key, values in means.items()}
        won += [title] * (max(total, key=total.__getitem__) == "law")
    table.notes += [
        f"At {LEVELS[0]:g} bits, mean of the mechanisms, on private text, naive Bayes through the "
        f"law is the best of all four on: {', '.join(won) or 'no task'}.",
        ALONE_NOTE,
    ]
    return table


TABLES: dict[str, Experiment] = {
    "bayes": bayes,
    "search": search,
}
