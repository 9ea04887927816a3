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
        head = ("", "private text", "plain text", "chance")
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
