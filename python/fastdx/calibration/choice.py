"""`choose_epsilon` finds an ε by its consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import NamedTuple

import numpy as np

from fastdx._shared.checks import counted, positive, share
from fastdx._shared.rounded import down
from fastdx.calibration.measures import measured_ids, names_of, statistics
from fastdx.calibration.search import check_tolerance, log_ratio, narrowed
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import best_guess, check_texts, named_in_sentences, prior_of
from fastdx.channel.law import Prior
from fastdx.exceptions import FastdxError, ParameterError
from fastdx.mechanisms import Mechanism

MOST_UNCHANGED = 0.15
"""The promise where none is given. That of `Tem.recommended`, whose worst word stays .14 of the
time."""


@dataclass(frozen=True)
class Choice:
    """A chosen ε and the reason. It prints as a sentence."""

    epsilon: float
    """The largest ε that keeps the promise; for a certified Tem the nominal one."""
    word: str
    """The word that breaks the promise first. Empty if all words or texts do so together ('bits',
    'named', 'deniable')."""
    reason: str
    """The part of the promise that a larger ε would break: 'unchanged', 'outputs', 'reidentified',
    'posterior', 'bits', 'named' or 'deniable'."""
    mechanism: Mechanism
    """The mechanism at that ε."""
    promise: str
    """The promise, as a sentence."""

    def __str__(self) -> str:
        whole = {"bits": "the bits bind", "named": "the texts bind (named)",
                 "deniable": "an output binds (deniable)"}  # fmt: skip
        binds = whole.get(self.reason, f"{self.word!r} binds ({self.reason})")
        return f"ε = {down(self.epsilon, 4)} is the largest at which {self.promise}; {binds}."


def choose_epsilon(
    mechanism: Mechanism,
    *,
    max_unchanged: float | None = None,
    min_outputs: int | None = None,
    max_reidentified: float | None = None,
    max_posterior: float | None = None,
    max_bits: float | None = None,
    max_named: float | None = None,
    min_deniable: int | None = None,
    factor: float = 2.0,
    texts: Iterable[str] | None = None,
    model: NgramPrior | None = None,
    prior: Prior = None,
    words: Iterable[str] | None = None,
    draws: int = 1000,
    tolerance: float = 1e-3,
) -> Choice:
    """Find the largest ε that keeps a promise about what happens to words (WSDM'20, section 4.1).

    Without a promise it is ``max_unchanged=0.15``, which gives about the ε of `Tem.recommended`.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism; the search starts at its ε.
    max_unchanged : float, optional
        A bound on the probability that a word comes back unchanged.
    min_outputs : int, optional
        The least number of distinct outputs of a word in `draws` draws (their expectation if the
        mechanism has a law). The papers take 0.5 and 300.
    max_reidentified : float, optional
        A bound on the probability that an attacker who knows the mechanism and `prior` names the
        written word (`reidentification`). This and the next three need a mechanism with a law.
    max_posterior : float, optional
        A bound on how certain any output makes that attacker of a word.
    max_bits : float, optional
        A bound on the bits that a release tells about a word (`Channel.bits`). A release of n words
        then tells any reader at most n times as much about the text.
    max_named : float, optional
        A bound on the share of content words of `texts` that the strongest attacker names in their
        sentences (`sentence_attack`), taken at the upper end of the 95% interval over texts. The
        attacker knows the mechanism and `model`. Every ε is tried on the same draws.
    min_deniable : int, optional
        (k, γ) plausible deniability (ICDM'19, section V-C): every output is within `factor` of its
        largest probability for at least so many words (`Channel.deniable`).
    factor : float, optional
        γ of `min_deniable`, at least 1.
    texts : iterable of str, optional
        Texts for `max_named`, like those to be protected. The model must not have seen them.
    model : NgramPrior, optional
        The attacker's model of the language, over the mechanism's words; for `max_named`.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written. For `max_reidentified` and `max_posterior` all words are
        equally likely by default, for `max_bits` the default is 'rank'.
    words : iterable of str, optional
        The words to measure, as for `statistics`.
    draws : int, optional
        Draws per word.
    tolerance : float, optional
        The relative accuracy of ε.

    Raises
    ------
    ParameterError
        No ε keeps the promise, or every ε does.
    """
    laws = {"max_reidentified": max_reidentified, "max_posterior": max_posterior,
            "max_bits": max_bits, "min_deniable": min_deniable,
            "max_named": max_named}  # fmt: skip
    if {max_unchanged, min_outputs, *laws.values()} == {None}:
        max_unchanged = MOST_UNCHANGED
    if max_unchanged is not None:
        share("max_unchanged", max_unchanged)
    promises = list(_promises(mechanism, prior, laws, factor, texts=texts, model=model))
    check_tolerance(tolerance)
    names = names_of(mechanism, measured_ids(mechanism, words))

    @cache  # the search evaluates ends of intervals again
    def look(epsilon: float) -> tuple[float, str, str] | None:
        """The log-ratio of consequence and bound, the word that binds, and the reason."""
        try:
            at = mechanism.with_epsilon(epsilon)
        except FastdxError:
            return None  # below the smallest ε of this mechanism
        table = statistics(at, names, draws, near=0, inputs=False)
        unchanged = table["N_w"] / (max_unchanged or inf)
        outputs = (min_outputs or 0) / np.maximum(table["S_w"], 1e-9)
        worst = int(np.maximum(unchanged, outputs).argmax())
        reason = "unchanged" if unchanged[worst] >= outputs[worst] else "outputs"
        found = log_ratio(float(max(unchanged[worst], outputs[worst])), 1.0), names[worst], reason
        for promise in promises:
            # If one is broken, the others' passes over all laws would decide nothing.
            if found[0] > 0:
                break
            value, word = promise.consequence(at)
            found = max(found, (log_ratio(value, promise.most), word, promise.reason))
        return found

    def excess(epsilon: float) -> float | None:
        return None if (found := look(epsilon)) is None else found[0]

    low, high = narrowed(excess, *_bracket(excess, mechanism.epsilon), tolerance)
    if (binding := look(high)) is None:
        raise ParameterError("mechanism has no ε in the range looked at")
    said = [promise.sentence for promise in promises]
    if min_outputs is not None:
        said.insert(0, f"every word has at least {min_outputs} distinct outputs in {draws} draws")
    if max_unchanged is not None:
        said.insert(0, "every word comes back unchanged with a probability of at most "
                       f"{max_unchanged:g}")  # fmt: skip
    promise = f"{', '.join(said)} ({len(names)} words measured)"
    return Choice(low, binding[1], binding[2], mechanism.with_epsilon(low), promise)


class _Promise(NamedTuple):
    """A promise that takes a pass over the laws of all words at every ε."""

    reason: str
    most: float
    consequence: Callable[[Mechanism], tuple[float, str]]
    """The number that is at most `most`, and the word that it is about, if it is about one."""
    sentence: str


def _promises(
    mechanism: Mechanism,
    prior: Prior,
    given: Mapping[str, float | None],
    factor: float,
    *,
    texts: Iterable[str] | None,
    model: NgramPrior | None,
) -> Iterator[_Promise]:
    """Yield the promises that need laws, checked."""
    for name, most in given.items():
        if most is not None and not mechanism.has_law:
            raise ParameterError(f"{name} must be left out: this mechanism has no law to compute")
    reidentified, posterior, bits, deniable, max_named = given.values()

    for reason, most, about in (
        ("reidentified", reidentified, "an attacker names the word with a probability of at most"),
        ("posterior", posterior, "no output makes an attacker surer of a word than"),
    ):
        if most is not None:
            share(f"max_{reason}", most)
            known = float(prior_of(mechanism, prior).max())
            _check_possible(f"max_{reason}", most, known, "the share of the commonest word, which "
                            "an attacker names without seeing anything")  # fmt: skip

            def guessed(at: Mechanism, reason: str = reason) -> tuple[float, str]:
                found = best_guess(at, prior_of(at, prior))
                first = float(found.success[0])
                return found.posterior if reason == "posterior" else first, found.word

            yield _Promise(reason, most, guessed, f"{about} {most:g}")
    if bits is not None:
        positive("max_bits", bits)
        written = "in the order of the vocabulary, by 1/(rank + 2.7)"
        if prior is not None and not isinstance(prior, str):
            written = "as often as the prior says"
        yield _Promise("bits", bits, lambda at: (Channel.of(at).bits(prior), ""),
                       f"a release tells at most {bits:g} bits a word (words written "
                       f"{written})")  # fmt: skip
    if deniable is not None:
        least = counted("min_deniable", deniable, 1, len(mechanism.space))

        def missing(at: Mechanism) -> tuple[float, str]:
            counts = Channel.of(at).deniable(factor)
            return float(least / counts[counts > 0].min()), ""

        yield _Promise("deniable", 1.0, missing, f"every output is within a factor {factor:g} of "
                       f"its largest probability for at least {least} words")  # fmt: skip
    if max_named is not None:
        share("max_named", max_named)
        attacked, reader = check_texts(texts, model)

        def named(at: Mechanism) -> tuple[float, str]:
            return named_in_sentences(at, attacked, reader).high, ""

        silent = None
        with suppress(FastdxError):  # below the smallest ε of this mechanism
            silent = mechanism.with_epsilon(mechanism.epsilon / 2**30)
        if silent is not None:
            _check_possible("max_named", max_named, named(silent)[0], "which an attacker names of "
                            "these texts by the language alone")  # fmt: skip
        yield _Promise("named", max_named, named, f"the strongest attacker names at most "
                       f"{max_named:g} of the content words of {len(attacked):,} texts, up to the "
                       "upper end of the interval")  # fmt: skip
    elif texts is not None or model is not None:
        raise ParameterError("max_named must be given with texts and model: they are for it")


def _check_possible(name: str, most: float, known: float, why: str) -> None:
    """Refuse a bound that an attacker exceeds without any output.

    The search would take forty passes to find no ε.
    """
    if most < known - 1e-12:
        raise ParameterError(
            f"no ε keeps the promise: {name} must be at least {known:.4g}, {why}; got {most}"
        )


def _bracket(excess: Callable[[float], float | None], start: float) -> tuple[float, float]:
    """Return two ε, a factor of 2 apart: the first keeps the promise, the second does not."""

    def kept(epsilon: float) -> bool:
        return (found := excess(epsilon)) is not None and found <= 0

    epsilon, step = start, 2.0 if kept(start) else 0.5
    for _ in range(40):
        if excess(epsilon) is None:
            raise ParameterError(
                f"no ε keeps the promise: the smallest this mechanism has is above {epsilon:g}"
            )
        if kept(epsilon) != kept(epsilon * step):
            return min(epsilon, epsilon * step), max(epsilon, epsilon * step)
        epsilon *= step
    raise ParameterError(f"no ε between {epsilon:g} and {start:g} decides the promise")
