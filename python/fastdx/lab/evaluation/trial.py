"""All attacks and tasks on one split of the texts, which all mechanisms share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior
from fastdx.exceptions import ParameterError
from fastdx.lab.attacks import LikelyInputs, known_runs, sentence_attack
from fastdx.lab.evaluation.attribution import Attribution
from fastdx.lab.evaluation.auditor import audit_users, runs_of
from fastdx.lab.evaluation.classifiers import text_classifier
from fastdx.lab.evaluation.context import ContextModel
from fastdx.lab.evaluation.membership import membership_inference
from fastdx.mechanisms import Mechanism

USERS = 8
"""The least number of authors for the auditor: two members and two others, in target and shadow."""
LONGEST = 600
"""The number of characters of a text whose words are attacked."""
HEART = 10.0
"""The strength of the classifier that membership inference attacks. It memorises much; a stronger
penalty would give nothing away, with or without privacy."""

Ids = NDArray[np.int64]
Values = dict[str, float]
"""Results by the names of `results.KINDS`; "… chance" is the chance of "…"."""


@dataclass(frozen=True)
class Texts:
    """Texts with their labels and authors, if given."""

    texts: Sequence[str]
    labels: Sequence[Hashable] | None
    authors: Sequence[Hashable] | None


@dataclass(frozen=True)
class Subject:
    """A mechanism to judge, with the attackers' knowledge of it."""

    name: str
    mechanism: Mechanism
    inputs: LikelyInputs
    channel: Channel | None
    """The channel of the mechanism; None without a law."""


def splits(groups: Sequence[Hashable], trials: int, rng: np.random.Generator) -> list[list[Ids]]:
    """Return four parts of the texts for every trial, with every group spread evenly over them."""
    by_group: dict[Hashable, list[int]] = defaultdict(list)
    for i, group in enumerate(groups):
        by_group[group].append(i)
    made = []
    for _ in range(trials):
        # Groups that do not divide by four are distributed at random.
        order = np.concatenate([rng.permutation(ids) for ids in by_group.values()])
        start = int(rng.integers(4))
        made.append([order[(start + part) % 4 :: 4] for part in range(4)])
    return made


class Trial:
    """A split into four parts: attackers know two, and attack the other two."""

    def __init__(self, every: Texts, parts: list[Ids], seed: Sequence[int], attacked: int) -> None:
        """Store the parts and the seed, which all mechanisms share."""
        self.every, self.parts, self.attacked = every, parts, attacked
        self.seed = tuple(seed)
        self.known, self.unknown = np.concatenate(parts[:2]), np.concatenate(parts[2:])

    def _rng(self, use: int) -> np.random.Generator:
        return np.random.default_rng([*self.seed, use])

    def measure(self, subject: Subject | None, vocabulary: Mechanism, *, network: bool) -> Values:
        """Run all attacks and tasks that have data, on plain text if `subject` is None."""
        texts = list(self.every.texts)
        values: Values = {}
        if subject is not None:
            values |= self._sentences(subject, network=network)
            texts = subject.mechanism.privatize(texts)
        if self.every.authors is not None:
            values |= self._authors(self.every.authors, texts)
            values |= self._users(self.every.authors, texts, vocabulary)
        if self.every.labels is not None:
            values |= self._learning(self.every.labels, texts)
        return values

    def _sentences(self, subject: Subject, *, network: bool) -> Values:
        """Attack the words of sentences."""
        known = _at(self.every.texts, self.known)
        model = NgramPrior.train(subject.mechanism.space, known)
        chosen = self._rng(0).permutation(self.unknown)[: self.attacked]
        unknown = [text[:LONGEST] for text in _at(self.every.texts, chosen)]
        chance = _commonest(model, unknown)
        if chance is None:
            return {}
        context = None
        if network:
            # With too few words to learn from there is no network, and nothing is measured.
            with suppress(ParameterError):
                context = ContextModel(subject.mechanism, known, subject.inputs, model,
                                       seed=int(self._rng(1).integers(1 << 30)))  # fmt: skip
        found = sentence_attack(subject.mechanism, unknown, model, inputs=subject.inputs,
                                context=context, channel=subject.channel,
                                bits=False)  # fmt: skip
        values = {
            "sentence frequencies": found.alone.mean,
            "sentence bigrams": found.sentence.mean,
        }
        if found.context is not None:
            values["sentence network"] = found.context.mean
        return values | {f"{name} chance": chance for name in values}

    @cached_property
    def _plain_attribution(self) -> Attribution[Hashable]:
        who = _at(self.every.authors or (), self.known)
        return Attribution(_at(self.every.texts, self.known), who, seed=self.seed[0])

    def _authors(self, authors: Sequence[Hashable], texts: list[str]) -> Values:
        """Return the success of attacks that name the authors of the unknown texts."""
        who, truth = _at(authors, self.known), _at(authors, self.unknown)
        plain = self._plain_attribution
        # The attacker may run the mechanism on the authors' known texts.
        alike = Attribution(_at(texts, self.known), who, seed=self.seed[0])
        released = _at(texts, self.unknown)

        def right(attack: Attribution[Any]) -> float:
            named = attack.attribute(released).authors
            return float(np.mean([a == b for a, b in zip(named, truth, strict=True)]))

        return {"author": right(plain), "author alike": right(alike)}

    def _users(
        self, authors: Sequence[Hashable], texts: list[str], vocabulary: Mechanism
    ) -> Values:
        """Return the success of an auditor who names the users a next-word model learned from."""
        wrote: dict[Hashable, list[int]] = defaultdict(list)
        for i, author in enumerate(authors):
            wrote[author].append(i)
        if len(wrote) < USERS:
            return {}
        space = vocabulary.space
        plain, private = ([runs_of(space, (from_[i] for i in ids)) for ids in wrote.values()]
                          for from_ in (self.every.texts, texts))  # fmt: skip
        order = self._rng(3).permutation(len(wrote))
        members, target = order % 2 == 0, order // 2 % 2 == 0
        return {"user": audit_users(plain, private, members, target, len(space)).auc}

    def _learning(self, labels: Sequence[Hashable], texts: list[str]) -> Values:
        """Return the accuracy of learned labels and the success of membership inference."""
        plain = [_at(self.every.texts, part) for part in self.parts]
        drawn = [_at(texts, part) for part in self.parts]
        truth = [_at(labels, part) for part in self.parts]
        learned = text_classifier(drawn[0] + drawn[1], truth[0] + truth[1])
        tested = truth[2] + truth[3]
        values = {
            "label private private": float(learned.score(drawn[2] + drawn[3], tested)),
            "label private plain": float(learned.score(plain[2] + plain[3], tested)),
        }
        # A classifier cannot judge texts of rare labels that its quarter lacks.
        target, shadow = (text_classifier(drawn[i], truth[i], strength=HEART) for i in (0, 1))
        both = set(truth[0]) & set(truth[1])
        pairs = [_of(both, t, y) for t, y in zip(plain, truth, strict=True)]
        if all(len(some) for some, _ in pairs):
            values["member"] = membership_inference(
                target, pairs[0], pairs[2], shadow=shadow, shadow_members=pairs[1],
                shadow_others=pairs[3], seed=self.seed[0],
            )  # fmt: skip
        return values


def _at(items: Sequence[str] | Sequence[Hashable], ids: Ids) -> list[str]:
    return [items[i] for i in ids]


def _of(known: set[str], texts: list[str], labels: list[str]) -> tuple[list[str], list[str]]:
    kept = [i for i, label in enumerate(labels) if label in known]
    return [texts[i] for i in kept], [labels[i] for i in kept]


def _commonest(model: NgramPrior, texts: list[str]) -> float | None:
    """Return the success of always naming the content word that is commonest in the known texts."""
    content = np.array([word not in STOP_WORDS for word in model.space.words])
    runs = known_runs(model.space, texts)
    written = np.concatenate([np.zeros(0, dtype=np.uint32), *runs])
    if not content[written].any():
        return None
    best = int(np.where(content, model.frequencies, 0).argmax())
    return float((written[content[written]] == best).mean())
