"""All attacks and tasks on texts of your own, over several splits of them."""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from fastdx._core import __version__
from fastdx._replace import open_output
from fastdx.attacks import BigramModel, reidentification, sentence_attack
from fastdx.bags import STOP_WORDS
from fastdx.evaluation import page
from fastdx.evaluation.attribution import Attribution
from fastdx.evaluation.classifiers import text_classifier
from fastdx.evaluation.intervals import Interval, over_trials
from fastdx.evaluation.membership import membership_inference
from fastdx.evaluation.repeats import frequency_attack
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism

__all__ = ["Evaluation", "Measure", "evaluate"]

REPEATS = (1, 10, 100)
HEART = 10.0
"""The strength of the classifier that membership inference attacks: one that learns much by heart,
for a cautious one gives nothing away with or without privacy."""

Tell = Callable[[str], object]


@dataclass(frozen=True)
class Measure:
    """One attack or one task, on private and on plain text."""

    name: str
    """What is measured."""
    kind: str
    """'attack' (lower is better) or 'task' (higher is better)."""
    private: Interval
    """With the mechanism."""
    plain: Interval | None
    """The same without any privacy; None where that is certain."""
    chance: float
    """What guessing without looking reaches."""
    chance_is: str
    """Which guess that is."""

    @property
    def found(self) -> bool:
        """Whether the whole interval lies above chance: an attack finds something."""
        return self.private.low > self.chance


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found. Printed, it is a table."""

    measures: list[Measure]
    """Attacks, then tasks."""
    guarantee: str
    """What is proved of the mechanism, as a sentence."""
    mechanism: str
    """The mechanism's class."""
    epsilon: float
    """Its ε."""
    texts: int
    """Texts that were used."""
    trials: int
    """Splits of the texts, each with fresh draws."""
    seed: int
    """Of splits, samples and attackers. The mechanism draws afresh unless it has a seed itself."""
    seeded: bool
    """Whether the mechanism has a seed: then its output is reproducible, hence NOT protected."""
    seconds: float
    """Time taken."""
    versions: dict[str, str]
    """Of fastdx, Python, numpy and scikit-learn."""
    command: str | None = None
    """The command that did it."""
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""

    def __str__(self) -> str:
        """Return a table of the measures."""
        head = ("measure", "private text", "plain text", "chance")
        rows = [
            (m.name, str(m.private), "–" if m.plain is None else str(m.plain), f"{m.chance:.3f}")
            for m in self.measures
        ]
        wide = [max(len(row[i]) for row in [head, *rows]) for i in range(4)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip()
            for row in [head, *rows]
        ]
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as data."""
        return asdict(self)

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)

    def write(self, path: str | PathLike[str]) -> None:
        """Write one HTML page that needs no network, and the same as JSON beside it.

        Parameters
        ----------
        path : str or os.PathLike
            Of the page; the other file has the suffix .json in the place of the page's own. None of
            the texts is on it, nor a label or an author.
        """
        name = os.fspath(path)
        root, suffix = os.path.splitext(name)  # noqa: PTH122
        if suffix.lower() == ".json":
            raise ParameterError("path must be that of a page; JSON is written beside it")
        with open_output(name) as out:
            out.write(page.render(self.to_dict()).encode())
        with open_output(f"{root}.json") as out:
            out.write(self.to_json().encode())


@dataclass(frozen=True)
class _Texts:
    """Texts with their labels and authors, as far as there are any."""

    texts: Sequence[str]
    labels: Sequence[Hashable] | None
    authors: Sequence[Hashable] | None

    def take(self, ids: NDArray[np.int64]) -> list[str]:
        return [self.texts[i] for i in ids]


def _splits(
    groups: Sequence[Hashable], trials: int, rng: np.random.Generator
) -> list[list[NDArray[np.int64]]]:
    """Return for every trial four parts of the texts, every group spread evenly over them."""
    by_group: dict[Hashable, list[int]] = defaultdict(list)
    for i, group in enumerate(groups):
        by_group[group].append(i)
    made = []
    for _ in range(trials):
        # Where the parts do not come out even, chance says which group's text goes where.
        order = np.concatenate([rng.permutation(ids) for ids in by_group.values()])
        start = int(rng.integers(4))
        made.append([order[(start + part) % 4 :: 4] for part in range(4)])
    return made


def _majority(labels: Sequence[Hashable]) -> float:
    return Counter(labels).most_common(1)[0][1] / len(labels)


def evaluate(
    mechanism: Mechanism,
    texts: Sequence[str],
    *,
    labels: Sequence[Hashable] | None = None,
    authors: Sequence[Hashable] | None = None,
    trials: int = 5,
    attacked: int = 100,
    seed: int = 0,
    command: str | None = None,
    progress: Tell | None = None,
) -> Evaluation:
    """Attack texts of your own, and learn from them, with and without privacy.

    Every trial splits the texts in four: two parts are known to attackers and to learn from, two
    are attacked and tested on; private text is drawn afresh. All measures share the splits, on
    plain and on private text. Intervals are Student's over the trials, widened because the trials
    share texts (see `over_trials`). Nothing is tuned.

    Parameters
    ----------
    mechanism : Mechanism
        What is to be judged, with all that it does to unknown words.
    texts : sequence of str
        At least 40.
    labels : sequence, optional
        A label of each text, of at least two kinds: for the task and for membership inference.
    authors : sequence, optional
        The author of each text, at least two: for authorship.
    trials : int, optional
        Splits, at least 2.
    attacked : int, optional
        Texts whose sentences are attacked in a trial (their first 600 characters), and words whose
        repeated outputs are counted.
    seed : int, optional
        Of the splits, samples and attackers.
    command : str, optional
        Stored in the result.
    progress : callable, optional
        Called with a line on what is being done.

    Returns
    -------
    Evaluation
        ``.measures``, ``.write("page.html")``.

    Raises
    ------
    ParameterError
        Too few texts, or labels that do not fit.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.evaluation import evaluate
    >>> english = Embedding.default()
    >>> e = Embedding(english.words[:2000], english.vectors[:2000])
    >>> texts = ["a good film and a fine cast", "a bad film with a dull plot"] * 30
    >>> found = evaluate(Tem(e, 3.0, seed=1), texts, labels=["good", "bad"] * 30, trials=2)
    >>> [m.name for m in found.measures if m.kind == "task"][1]
    'label learned from private text, used on plain text'
    """
    tell = progress or (lambda line: None)
    start = time.perf_counter()
    if not isinstance(mechanism, Mechanism):
        raise InputTypeError(f"mechanism must be a Mechanism, not {type(mechanism).__name__}")
    if isinstance(texts, str) or len(texts) < 40:
        raise ParameterError("texts must be a sequence of at least 40")
    if trials < 2 or attacked < 1:
        raise ParameterError("trials must be at least 2, and attacked at least 1")
    notes: list[str] = []
    for name, given in (("labels", labels), ("authors", authors)):
        if given is None:
            notes.append(f"No {name} were given: what needs them was not measured.")
        elif len(given) != len(texts) or len(set(given)) < 2:
            raise ParameterError(f"{name} must be one a text, {len(texts)}, of at least two kinds")
    every = _Texts(texts, labels, authors)
    rng = np.random.default_rng(seed)
    groups = labels if labels is not None else authors
    values: dict[str, list[float]] = defaultdict(list)
    tell("words by themselves")
    # How often words are written: as in all of these texts.
    frequencies = BigramModel(mechanism.space, texts).frequencies
    named = reidentification(mechanism, frequencies, draws=50, confidence=0.95)
    parts = _splits(groups or [0] * len(texts), trials, rng)
    for number, four in enumerate(parts, 1):
        tell(f"trial {number} of {trials}: sentences and repeated words")
        _words(values, mechanism, every, four, attacked=attacked, rng=rng)
        if authors is not None:
            tell(f"trial {number} of {trials}: authors")
            _authorship(values, mechanism, every, four, seed)
        if labels is not None:
            tell(f"trial {number} of {trials}: labels and membership")
            _learning(values, mechanism, every, four, seed)
    word = Measure(
        "word named from one output, by the best attacker (frequencies known)", "attack",
        Interval(named.success[1], named.low[1], named.high[1]), None, float(frequencies.max()),
        "always the commonest word",
    )  # fmt: skip
    measures = [word, *_measures(values, every, len(mechanism.space))]
    versions = {"fastdx": __version__, "python": platform.python_version(),
                "numpy": np.__version__, "scikit-learn": sklearn.__version__}  # fmt: skip
    return Evaluation(
        measures, str(mechanism.guarantee), type(mechanism).__name__, mechanism.epsilon, len(texts),
        trials, seed, mechanism.seed is not None, time.perf_counter() - start, versions, command,
        notes,
    )  # fmt: skip


def _words(
    values: dict[str, list[float]],
    mechanism: Mechanism,
    every: _Texts,
    four: list[NDArray[np.int64]],
    *,
    attacked: int,
    rng: np.random.Generator,
) -> None:
    """Attack words in sentences, and repeated."""
    known = every.take(np.concatenate(four[:2]))
    model = BigramModel(mechanism.space, known)
    unknown = [t[:600] for t in every.take(rng.permutation(np.concatenate(four[2:]))[:attacked])]
    try:
        sentences = sentence_attack(mechanism, unknown, model)
    except ParameterError:
        # No content word of the vocabulary among them.
        pass
    else:
        values["sentence"].append(sentences.attack)
        values["sentence chance"].append(_commonest(model, unknown))
    names = mechanism.space.words
    drawn = rng.choice(len(names), min(4 * attacked, len(names)), replace=False)
    whole = [names[i] for i in drawn if mechanism.tokenize(names[i]) == [names[i]]][:attacked]
    for times in REPEATS:
        if whole:
            values[f"repeats {times}"].append(
                float(frequency_attack(mechanism, whole, times).mean())
            )


def _commonest(model: BigramModel, texts: list[str]) -> float:
    """The share of content words that is named right by always naming the commonest one known."""
    content = np.array([word not in STOP_WORDS for word in model.space.words])
    written = np.concatenate([run for text in texts for run in model.runs(text)])
    best = int(np.where(content, model.frequencies, 0).argmax())
    return float((written[content[written]] == best).mean())


def _authorship(
    values: dict[str, list[float]],
    mechanism: Mechanism,
    every: _Texts,
    four: list[NDArray[np.int64]],
    seed: int,
) -> None:
    authors = every.authors or []
    known, unknown = np.concatenate(four[:2]), np.concatenate(four[2:])
    who, truth = [authors[i] for i in known], [authors[i] for i in unknown]
    plain = Attribution(every.take(known), who, seed=seed)
    private = mechanism.privatize(every.take(unknown))
    # The attacker may run the mechanism on what is known of the authors.
    alike = Attribution(mechanism.privatize(every.take(known)), who, seed=seed)

    def right(attack: Attribution[Hashable], texts: list[str]) -> float:
        return float(np.mean([a == b for a, b in zip(attack.attribute(texts).authors, truth,
                                                     strict=True)]))  # fmt: skip

    values["author plain"].append(right(plain, every.take(unknown)))
    values["author"].append(right(plain, private))
    values["author alike"].append(right(alike, private))


def _learning(
    values: dict[str, list[float]],
    mechanism: Mechanism,
    every: _Texts,
    four: list[NDArray[np.int64]],
    seed: int,
) -> None:
    labels = every.labels or []
    texts = [every.take(part) for part in four]
    truth = [[labels[i] for i in part] for part in four]
    drawn = [mechanism.privatize(part) for part in texts]
    test, test_labels = texts[2] + texts[3], truth[2] + truth[3]
    for name, train, tested in (
        ("plain", texts, test),
        ("private plain", drawn, test),
        ("private private", drawn, drawn[2] + drawn[3]),
    ):
        learned = text_classifier(train[0] + train[1], truth[0] + truth[1])
        values[f"task {name}"].append(float(learned.score(tested, test_labels)))
    for name, train in (("member plain", texts), ("member", drawn)):
        # Rare labels may be missing from a quarter; nothing can be said of their texts then.
        target, shadow = (text_classifier(train[i], truth[i], strength=HEART) for i in (0, 1))
        known = set(truth[0]) & set(truth[1])
        pairs = [_of(known, t, y) for t, y in zip(texts, truth, strict=True)]
        values[name].append(
            membership_inference(
                target,
                pairs[0],
                pairs[2],
                shadow=shadow,
                shadow_members=pairs[1],
                shadow_others=pairs[3],
                seed=seed,
            )
        )


def _of(
    known: set[Hashable], texts: list[str], labels: list[Hashable]
) -> tuple[list[str], list[Hashable]]:
    kept = [i for i, label in enumerate(labels) if label in known]
    return [texts[i] for i in kept], [labels[i] for i in kept]


def _measures(values: dict[str, list[float]], every: _Texts, vocabulary: int) -> list[Measure]:
    # Halves: as many texts are tested as are learned from.
    def interval(name: str, reused: float = 1.0) -> Interval:
        return over_trials(values[name], reused=reused, within=(0.0, 1.0))

    def chance(name: str) -> float:
        return float(np.mean(values[name]))

    made: list[Measure] = []
    if len(values["sentence"]) > 1:
        made.append(
            Measure("content word of a sentence recovered (frequencies or bigrams)", "attack",
                    interval("sentence"), None, chance("sentence chance"),
                    "always the commonest content word"),
        )  # fmt: skip
    made += [
        Measure(f"word named by counting {n} output{'s' * (n > 1)}", "attack",
                interval(f"repeats {n}", 0.0), None, 1 / vocabulary,
                "any word of the vocabulary")
        for n in REPEATS if f"repeats {n}" in values
    ]  # fmt: skip
    if every.authors is not None:
        most = _majority(every.authors)
        for name, text in (
            ("author", "author found, plain texts known"),
            ("author alike", "author found, texts known made private too"),
        ):
            made.append(Measure(text, "attack", interval(name), interval("author plain"), most,
                                "always the author of most texts"))  # fmt: skip
    if every.labels is not None:
        made.append(Measure("member of the training texts told (AUC)", "attack", interval("member"),
                            interval("member plain"), 0.5, "either"))  # fmt: skip
        most = _majority(every.labels)
        for name, text in (
            ("private private", "label learned from private text, used on private text"),
            ("private plain", "label learned from private text, used on plain text"),
        ):
            found, plain = interval(f"task {name}"), interval("task plain")
            made.append(Measure(text, "task", found, plain, most, "always the commonest label"))
    return made
