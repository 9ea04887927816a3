"""Runs all attacks and tasks on a user's texts, over several splits of them."""

from __future__ import annotations

import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from fastdx._core import __version__
from fastdx._shared.intervals import Interval, of_share, over_trials
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.receiver import entropy
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.lab.attacks import LikelyInputs, reidentification
from fastdx.lab.evaluation import context
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
from fastdx.lab.evaluation.trial import USERS, Subject, Texts, Trial, splits
from fastdx.mechanisms import Mechanism

Values = dict[str, list[float]]
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
    values: dict[str | None, Values] = defaultdict(lambda: defaultdict(list))
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
        success = min(1.0, float(inputs.joint[:, 0].sum()))
        named = Interval(success, success, success)
    else:
        counted = reidentification(mechanism, frequencies, draws=50, confidence=0.95)
        named = Interval(counted.success[1], counted.low[1], counted.high[1])
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


def _measures(policy: str, values: Values, plain: Values, every: Texts) -> list[Measure]:
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
