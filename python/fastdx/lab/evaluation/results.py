"""The results of an evaluation, as a table, data or a page."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

from fastdx._shared.intervals import Interval
from fastdx._shared.replace import open_output
from fastdx._shared.rounded import up
from fastdx.exceptions import ParameterError
from fastdx.lab.evaluation import page

REPEATS = (1, 10, 100)
"""The numbers of outputs of a word in the attacks that count outputs."""


@dataclass(frozen=True)
class Kind:
    """A kind of measurement."""

    name: str
    """The name of the measurement."""
    kind: str
    """'attack' (lower is better) or 'task' (higher is better)."""
    meaning: str
    """A sentence that explains the measurement."""
    chance_is: str
    """A description of the guess without looking at the release."""


WORD = Kind(
    "word named from one output, by the best attacker", "attack",
    "He knows the mechanism and how often each word is written, and sees a word's replacement by "
    "itself. Nobody who knows only that does better.", "always the commonest word",
)  # fmt: skip


REPEATED = {
    (attack, n): Kind(name.format(f"{n} output{'s' * (n > 1)}"), "attack", meaning,
                      "any word of the vocabulary")
    for attack, name, meaning in (
        ("counting", "word named by counting {}",
         "One word was released again and again; he names the most frequent replacement."),
        ("explaining", "word named as what explains {} best",
         "The same, by an attacker who knows the law of the mechanism."))
    for n in REPEATS
}  # fmt: skip
"""Measurements that are made once, on words drawn from the vocabulary."""


_COMMONEST, _EITHER = "always the commonest content word", "tossing a coin"
_LABEL, _AUTHOR = "always the commonest label", "always the author of most texts"
KINDS = {
    "sentence frequencies": Kind(
        "content word of a sentence named, by frequencies", "attack",
        "He takes each replacement by itself and names the likeliest word.", _COMMONEST),
    "sentence bigrams": Kind(
        "content word of a sentence named, by bigrams", "attack",
        "He knows which words follow each other, and names for each place the word that is "
        "likeliest given the whole release, summed over all sentences: exact where the "
        "mechanism has a law.", _COMMONEST),
    "sentence network": Kind(
        "content word of a sentence named, by a neural network", "attack",
        "He has trained a small network on private texts of his own to name a word from the "
        "replacements around it.", _COMMONEST),
    "author": Kind(
        "author found, plain texts known", "attack",
        "He has texts of each author as they were written, and names who wrote a private one "
        "(Koppel, Schler and Argamon 2011).", _AUTHOR),
    "author alike": Kind(
        "author found, texts known made private too", "attack",
        "The same, after he ran the mechanism on the texts that he has.", _AUTHOR),
    "user": Kind(
        "user of the training texts told (AUC)", "attack",
        "An auditor tells whose texts a next-word model learned from (Song and Shmatikov "
        "2019).", _EITHER),
    "member": Kind(
        "member of the training texts told (AUC)", "attack",
        "He tells which texts a classifier learned from (Shokri et al. 2017). The classifier "
        "is one that learns much by heart.", _EITHER),
    "label private private": Kind(
        "label learned from private text, used on private text", "task",
        "The share of labels that is right: train private, test private.", _LABEL),
    "label private plain": Kind(
        "label learned from private text, used on plain text", "task",
        "The share of labels that is right: train private, test plain.", _LABEL),
}  # fmt: skip
"""Measurements of a trial, in the order of the table."""


@dataclass(frozen=True)
class Measure(Kind):
    """One attack or one task, on private and on plain text."""

    policy: str
    """The name of the policy."""
    private: Interval
    """The result on private text."""
    plain: Interval | None
    """The result on plain text; None if plain text gives the answer away."""
    chance: float
    """The result of that guess."""


@dataclass(frozen=True)
class Judged:
    """A mechanism that the evaluation judged."""

    name: str
    """The policy's name."""
    mechanism: str
    """The mechanism's class."""
    epsilon: float
    """The ε of the mechanism."""
    guarantee: str
    """The guarantee as a sentence."""
    seeded: bool
    """Whether the mechanism has a seed. Its output is then reproducible, so NOT protected."""
    bits: Interval | None
    """The bits that a release tells about a word, under the words' frequencies in these texts. None
    for a mechanism without a law."""
    entropy: float
    """The entropy of a word in bits; plain text tells all of it."""


@dataclass(frozen=True)
class Evaluation:
    """The results of `evaluate`. It prints as a table."""

    policies: list[Judged]
    """The mechanisms."""
    measures: list[Measure]
    """Attacks, then tasks; each one for all policies in turn."""
    texts: int
    """The number of texts used."""
    trials: int
    """The number of splits of the texts; each has fresh draws."""
    seed: int
    """The seed of splits, samples and attackers. A mechanism's draws are fresh unless it has a seed
    itself."""
    seconds: float
    """The time taken."""
    versions: dict[str, str]
    """The versions of fastdx, Python and the libraries."""
    command: str | None = None
    """The command that ran the evaluation."""
    notes: list[str] = field(default_factory=list)
    """The measurements that were left out, with reasons."""

    def of(self, policy: str) -> list[Measure]:
        """Return the measures of one policy."""
        return [m for m in self.measures if m.policy == policy]

    def __str__(self) -> str:
        """Return a table of the measures."""
        rows = self._rows()
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, wide)).rstrip() for row in rows)
        return "\n".join([*lines, *self.notes])

    def to_markdown(self) -> str:
        """Return the table as Markdown, with one paragraph per note below it."""
        head, *rows = (f"| {' | '.join(map(_cell, row))} |" for row in self._rows())
        table = [head, "|" + "---|" * (len(self.policies) + 3), *rows]
        return "\n\n".join(["\n".join(table), *self.notes])

    def _rows(self) -> list[list[str]]:
        """Return the cells of the table, the head first."""
        names = [p.name for p in self.policies]
        own = ["private text"] if len(names) == 1 else names
        rows = {"": ["measure", *own, "plain text", "chance"]}
        bits_of = ["–" if p.bits is None else str(p.bits) for p in self.policies]
        epsilons = (up(p.epsilon, 4) for p in self.policies)
        rows["ε"] = ["ε per unit of distance", *epsilons, "–", "–"]
        # Policies with different vocabularies have different entropies of a word.
        plain = {f"{p.entropy:.3f}" for p in self.policies}
        rows["bits"] = ["bits a word", *bits_of, plain.pop() if len(plain) == 1 else "–", "0.000"]
        for m in self.measures:
            row = rows.setdefault(m.name, [m.name, *["–"] * len(names), "–", ""])
            row[1 + names.index(m.policy)] = str(m.private)
            row[-2] = "–" if m.plain is None else str(m.plain)
            row[-1] = f"{m.chance:.3f}"
        return list(rows.values())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as data."""
        return asdict(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write one HTML page that needs no network, and the same as JSON beside it.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the page. The JSON file has the same path with the suffix .json. Neither
            holds a text, a label or an author.
        """
        name = os.fspath(path)
        root, suffix = os.path.splitext(name)  # noqa: PTH122
        if suffix.lower() == ".json":
            raise ParameterError("path must be that of a page; JSON is written beside it")
        data = self.to_dict()
        with open_output(name) as out:
            out.write(page.render(data).encode())
        with open_output(f"{root}.json") as out:
            text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
            out.write(text.encode())


def _cell(text: str) -> str:
    """Escape a cell of Markdown, because names of policies come from a file."""
    return re.sub(r"([|\\`*_<])", r"\\\1", text)
