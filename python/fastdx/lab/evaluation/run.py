"""Runs all attacks and tasks on a user's texts, over several splits of them."""

from __future__ import annotations

import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from fastdx._core import __version__
from fastdx._shared.intervals import Interval, of_share, quantile
from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.lab.attacks import LikelyInputs, known_runs, reidentification, sentence_attack
from fastdx.lab.evaluation import context
from fastdx.lab.evaluation.attribution import Attribution
from fastdx.lab.evaluation.auditor import audit_users, membership_inference, runs_of
from fastdx.lab.evaluation.classifiers import text_classifier
from fastdx.lab.evaluation.context import ContextModel
from fastdx.lab.evaluation.repeats import frequency_attack, likelihood_attack
from fastdx.lab.evaluation.results import (
    KINDS,
    REPEATED,
    REPEATS,
    WORD,
    Evaluation,
    Judged,
    Measure,
)
from fastdx.lab.limit import entropy
from fastdx.mechanisms import Mechanism

Series = dict[str, list[float]]
"""Results of all trials."""
LEAST_TEXTS = 40


def evaluate(
    mechanism: Mechanism | Mapping[str, Mechanism],
    texts: Sequence[str],
    *,
    labels: Sequence[Hashable] | None = None,
    authors: Sequence[Hashable] | None = None,
    trials: int = 5,
    attacked: int = 100,
    seed: int = 0,
    network: bool = True,
    command: str | None = None,
    progress: Callable[[str, float | None], object] | None = None,
) -> Evaluation:
    """Attack your own texts, and learn from them, with and without privacy.

    Every trial splits the texts into four parts and draws private text afresh. Attackers know two
    parts, and models learn from these. The other two parts are attacked, and used as test texts.
    All mechanisms and plain text share the splits. Nothing is tuned on the test parts.

    Intervals are Student's over the trials, widened because the trials share texts (see
    `over_trials`). The intervals of repeated words are exact (`of_share`).

    Parameters
    ----------
    mechanism : Mechanism or mapping of str to Mechanism
        The mechanism to judge, or several mechanisms by name.
    texts : sequence of str
        The texts, at least 40.
    labels : sequence, optional
        The label of each text, with at least two different labels; for the task and for membership
        inference.
    authors : sequence, optional
        The author of each text, at least two different authors; for attacks on authorship. The
        auditor needs at least 8.
    trials : int, optional
        The number of splits, at least 2.
    attacked : int, optional
        Per trial, the number of texts whose sentences are attacked (their first 600 characters),
        and the number of words whose repeated outputs are counted.
    seed : int, optional
        The seed of the splits, samples and attackers.
    network : bool, optional
        Whether a neural network attacks sentences too, if Keras is installed.
    command : str, optional
        A command line to store in the result.
    progress : callable, optional
        Called with a line about each step, and the share of the work before it, if that is known.

    Returns
    -------
    Evaluation
        ``.measures``, ``.write("page.html")``.

    Raises
    ------
    InputTypeError
        An argument is no mechanism.
    ParameterError
        There are too few texts, or `labels` or `authors` do not fit them.
    """
    tell = progress or (lambda line, share: None)
    start = time.perf_counter()
    named = _named(mechanism)
    if isinstance(texts, str) or len(texts) < LEAST_TEXTS:
        raise ParameterError(f"texts must be at least {LEAST_TEXTS} texts, got {len(texts)}")
    if trials < 2 or attacked < 1:
        raise ParameterError("trials must be at least 2, and attacked at least 1")
    for name, given in (("labels", labels), ("authors", authors)):
        if given is not None and (len(given) != len(texts) or len(set(given)) < 2):
            raise ParameterError(f"{name} must be one a text, {len(texts)}, of at least two kinds")
    every = Texts(texts, labels, authors)
    notes = _notes(every, network)
    network = network and context.missing() is None
    found: dict[str, list[Measure]] = {}
    subjects, judged = [], []
    for name, one in named.items():
        tell(f"{name}: words by themselves", None)
        subject, policy, measure = _word(name, one, texts)
        subjects.append(subject)
        judged.append(policy)
        tell(f"{name}: repeated words", None)
        found[name] = [measure, *_repeated(subject, attacked * trials, seed)]
    rng = np.random.default_rng(seed)
    groups = labels if labels is not None else authors
    parts = splits(groups or [0] * len(texts), trials, rng)
    tell(f"{trials} trials", None)
    values: dict[str | None, Series] = defaultdict(lambda: defaultdict(list))
    for number, four in enumerate(parts, 1):
        trial = Trial(every, four, [seed, number], attacked)
        for at, who in enumerate((None, *subjects)):
            called = "plain text" if who is None else who.name
            before = (number - 1 + max(at - 1, 0) / len(subjects)) / trials
            tell(f"trial {number} of {trials}: {called}", before)
            own = (who or subjects[0]).mechanism
            for key, value in trial.measure(who, own, network=network).items():
                values[None if who is None else who.name][key].append(value)
    for name in named:
        found[name] += _measures(name, values[name], values[None], every)
        notes += _lacking(found[name], every, network)
    # Sorted by measurement; within one, by policy.
    kinds = [WORD, *REPEATED.values(), *KINDS.values()]
    order = [kind.name for kind in kinds]
    measures = sorted((m for own in found.values() for m in own),
                      key=lambda m: (m.kind != "attack", order.index(m.name)))  # fmt: skip
    return Evaluation(judged, measures, len(texts), trials, seed, time.perf_counter() - start,
                      _versions(network), command, notes)  # fmt: skip


def _named(mechanism: object) -> dict[str, Mechanism]:
    given = mechanism if isinstance(mechanism, Mapping) else {"": mechanism}
    if not given:
        raise ParameterError("mechanism must hold at least one")
    named: dict[str, Mechanism] = {}
    for name, one in given.items():
        if not isinstance(one, Mechanism):
            of = f"[{name!r}]" if name else ""
            raise InputTypeError(f"mechanism{of} must be a Mechanism, not {type(one).__name__}")
        named[name or f"{type(one).__name__} at ε = {one.epsilon:.4g}"] = one
    return named


def _notes(every: Texts, network: bool) -> list[str]:
    """Return notes about attacks and tasks that are left out."""
    notes = [
        f"No {name} were given: what needs them was not measured."
        for name, given in (("labels", every.labels), ("authors", every.authors))
        if given is None
    ]
    if every.authors is not None and len(set(every.authors)) < USERS:
        notes.append(f"The auditor of users was not run: it needs at least {USERS} authors.")
    lacking = context.missing()
    if not network:
        notes.append("The neural network that attacks sentences was not run: it was not wanted.")
    elif lacking:
        notes.append(f"The neural network that attacks sentences was not run: {lacking} is not "
                     "installed (pip install 'fastdx[networks]').")  # fmt: skip
    return notes


def _lacking(measures: list[Measure], every: Texts, network: bool) -> list[str]:
    """Return notes about measurements that had data, but too few texts."""
    wanted = [key for key in KINDS if key.startswith("sentence")
              and (network or key != "sentence network")]  # fmt: skip
    if every.authors is not None:
        enough = len(set(every.authors)) >= USERS
        wanted += ["author", "author alike", *(["user"] if enough else [])]
    if every.labels is not None:
        wanted += ["member", "label private private", "label private plain"]
    there = {m.name for m in measures}
    return [f"{measures[0].policy}: too few texts to measure: {KINDS[key].name}."
            for key in wanted if KINDS[key].name not in there]  # fmt: skip


def _word(name: str, mechanism: Mechanism, texts: Sequence[str]) -> tuple[Subject, Judged, Measure]:
    """Return the subject, its bits, and the success of the best guess of a word."""
    # The prior is the frequencies of words in all of these texts.
    frequencies = NgramPrior.train(mechanism.space, texts, 1).frequencies
    inputs = LikelyInputs.of(mechanism, frequencies)
    channel = bits = None
    if mechanism.has_law:
        channel = Channel.of(mechanism)
        told = channel.bits(frequencies)
        bits = Interval(float(told), told.low, told.high)
    found = reidentification(mechanism, frequencies, draws=50, confidence=0.95)
    named = Interval(found.success[1], found.low[1], found.high[1])
    judged = Judged(name, type(mechanism).__name__, mechanism.epsilon, str(mechanism.guarantee),
                    mechanism.seed is not None, bits, entropy(frequencies))  # fmt: skip
    measure = Measure(**vars(WORD), policy=name, private=named, plain=None,
                      chance=float(frequencies.max()))  # fmt: skip
    return Subject(name, mechanism, inputs, channel), judged, measure


def _repeated(subject: Subject, number: int, seed: int) -> list[Measure]:
    """Attack words of the vocabulary that are released repeatedly."""
    mechanism = subject.mechanism
    names = mechanism.space.words
    order = np.random.default_rng([seed, 0]).permutation(len(names))
    # Only words that the tokeniser does not split or change.
    words = [names[i] for i in order if mechanism.tokenize(names[i]) == [names[i]]][:number]
    if not words:
        return []
    hits: dict[str, list[NDArray[np.bool_]]] = {
        "counting": [frequency_attack(mechanism, words, n) for n in REPEATS],
        "explaining": list(likelihood_attack(mechanism, words, REPEATS, inputs=subject.inputs)),
    }
    made = []
    for (attack, n), kind in REPEATED.items():
        right = int(hits[attack][REPEATS.index(n)].sum())
        made.append(Measure(**vars(kind), policy=subject.name, private=of_share(right, len(words)),
                            plain=None, chance=1 / len(names)))  # fmt: skip
    return made


def _measures(policy: str, values: Series, plain: Series, every: Texts) -> list[Measure]:
    majority = {
        kind: Counter(given).most_common(1)[0][1] / len(given)
        for kind, given in (("author", every.authors), ("label", every.labels))
        if given is not None
    }
    made = []
    for key, kind in KINDS.items():
        # An interval needs at least two trials with this measurement.
        if len(values.get(key, [])) < 2:
            continue
        if f"{key} chance" in values:
            chance = float(np.mean(values[f"{key} chance"]))
        else:
            chance = majority.get(key.split()[0], 0.5)
        without = _interval(plain[key]) if key in plain else None
        made.append(Measure(**vars(kind), policy=policy, private=_interval(values[key]),
                            plain=without, chance=chance))  # fmt: skip
    return made


def over_trials(
    values: Iterable[float],
    *,
    reused: float = 0.0,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """Return the mean of independent trials and its Student interval of 95%.

    Parameters
    ----------
    values : iterable of float
        The value of each trial; at least two.
    reused : float, optional
        For trials that are different splits of the same texts: the number of test texts divided by
        the number of training texts. Such trials are not independent, so the interval is widened as
        in Nadeau and Bengio (2003, "Inference for the generalization error").
    within : (float, float), optional
        The range of possible values; the interval is cut to it.

    Examples
    --------
    >>> from fastdx.lab.evaluation import over_trials
    >>> print(over_trials([0.7, 0.8, 0.9]))
    0.800 [0.552, 1.048]
    """
    x = np.asarray(list(values), dtype=np.float64)
    if len(x) < 2:
        raise ParameterError(f"values must be at least 2 trials, got {len(x)}")
    half = quantile(0.95, len(x) - 1) * float(np.sqrt(x.var(ddof=1) * (1 / len(x) + reused)))
    mean = float(x.mean())
    return Interval(mean, max(mean - half, within[0]), min(mean + half, within[1]))


def _interval(values: list[float]) -> Interval:
    # `reused` is 1, because there are as many test texts as training texts.
    return over_trials(values, reused=1.0, within=(0.0, 1.0))


def _versions(network: bool) -> dict[str, str]:
    found = {"fastdx": __version__, "Python": platform.python_version(), "numpy": np.__version__,
             "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}  # fmt: skip
    if network and "keras" in sys.modules:
        keras = sys.modules["keras"]
        found["Keras"] = f"{keras.__version__} on {keras.backend.backend()}"
    return found


# One split of the texts, which all mechanisms share.

USERS = 8
"""The least number of authors for the auditor: two members and two others, in target and shadow."""
LONGEST = 600
"""The number of characters of a text whose words are attacked."""
HEART = 10.0
"""The strength of the classifier that membership inference attacks. It memorises much; a stronger
penalty would give nothing away, with or without privacy."""

Ids = NDArray[np.int64]
Values = dict[str, float]
"""Results of a trial by the names of `results.KINDS`; "… chance" is the chance of "…"."""


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
        model_of_context = None
        if network:
            # With too few words to learn from there is no network, and nothing is measured.
            with suppress(ParameterError):
                model_of_context = ContextModel(
                    subject.mechanism, known, subject.inputs, model,
                    seed=int(self._rng(1).integers(1 << 30)),
                ).log_probability  # fmt: skip
        found = sentence_attack(subject.mechanism, unknown, model, inputs=subject.inputs,
                                context=model_of_context, channel=subject.channel,
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
