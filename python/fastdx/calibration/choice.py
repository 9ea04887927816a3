"""`choose_epsilon` and `match` find an ε by its consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from fastdx._shared.checks import counted, one_of, positive, share
from fastdx._shared.rounded import down
from fastdx.calibration.measures import measured_ids, names_of, spread, statistics, summary
from fastdx.calibration.search import check_tolerance, log_ratio, narrowed
from fastdx.calibration.table import Table
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import best_guess, check_texts, named_in_sentences, prior_of
from fastdx.channel.receiver import Prior
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
    curve: Table
    """A row for each ε of the search: epsilon, and mean and worst of N_w, support and S_w."""
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
    quantile: str | float = "worst",
    words: Iterable[str] | None = None,
    draws: int = 1000,
    tolerance: float = 1e-3,
    progress: Callable[[int], object] | None = None,
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
    quantile : 'worst' or float, optional
        'worst': `max_unchanged` and `min_outputs` hold for every measured word. A number q: they
        hold for the share q of them.
    words : iterable of str, optional
        The words to measure, as for `statistics`.
    draws : int, optional
        Draws per word.
    tolerance : float, optional
        The relative accuracy of ε.
    progress : callable, optional
        Called now and then with a growing count.

    Raises
    ------
    ParameterError
        No ε keeps the promise, or every ε does.

    Examples
    --------
    >>> from fastdx import Tem, calibration
    >>> choice = calibration.choose_epsilon(Tem(epsilon=1.0), words=["coffee", "tea", "king"])
    >>> round(choice.mechanism.epsilon, 1) == round(choice.epsilon, 1)
    True
    """
    attacked = {"max_reidentified": max_reidentified, "max_posterior": max_posterior}
    releases = {"max_bits": max_bits, "max_named": max_named, "min_deniable": min_deniable}
    if {max_unchanged, min_outputs, *releases.values(), *attacked.values()} == {None}:
        max_unchanged = MOST_UNCHANGED
    _check_promises(mechanism, max_unchanged, attacked, prior)
    promises = _release_promises(mechanism, prior, releases, factor, texts=texts, model=model)
    check_tolerance(tolerance)
    kept = 1.0 if quantile == "worst" else quantile
    if isinstance(kept, str) or not 0 < kept <= 1:
        raise ParameterError(f"quantile must be 'worst' or between 0 and 1, got {quantile!r}")
    names = names_of(mechanism, measured_ids(mechanism, words))
    curve: list[dict[str, float]] = []

    # These functions return the log-ratio of consequence and bound, which is above 0 if ε breaks
    # the promise; then the word that binds, and the reason.
    @cache  # the search evaluates ends of intervals again
    def of_words(epsilon: float) -> tuple[float, str, str] | None:
        try:
            at = mechanism.with_epsilon(epsilon)
        except FastdxError:
            return None  # below the smallest ε of this mechanism
        table = statistics(at, names, draws, near=0, inputs=False, progress=progress)
        curve.append(summary(epsilon, table))
        unchanged = table["N_w"] / (max_unchanged or np.inf)
        outputs = (min_outputs or 0) / np.maximum(table["S_w"], 1e-9)
        strain = np.maximum(unchanged, outputs)
        order = np.argsort(strain, kind="stable")
        at_quantile = order[max(int(np.ceil(kept * len(order))) - 1, 0)]
        reason = "unchanged" if unchanged[at_quantile] >= outputs[at_quantile] else "outputs"
        return log_ratio(float(strain[at_quantile]), 1.0), names[at_quantile], reason

    @cache
    def of_attacker(epsilon: float) -> tuple[float, str, str]:
        found = best_guess(mechanism.with_epsilon(epsilon), prior_of(mechanism, prior), 1, progress)
        strains = [(-np.inf, "", "")]
        if max_reidentified is not None:
            success = log_ratio(float(found.success[0]), max_reidentified)
            strains.append((success, found.word, "reidentified"))
        if max_posterior is not None:
            strains.append((log_ratio(found.posterior, max_posterior), found.word, "posterior"))
        return max(strains)

    @cache
    def of_release(epsilon: float) -> tuple[float, str, str]:
        at = mechanism.with_epsilon(epsilon)
        return max((log_ratio(t.consequence(at), t.most), "", t.reason) for t in promises)

    def look(epsilon: float) -> tuple[float, str, str] | None:
        found = of_words(epsilon)
        # If the measured words break the promise, the pass over all laws would decide nothing.
        if found is None or found[0] > 0:
            return found
        if set(attacked.values()) != {None}:
            found = max(found, of_attacker(epsilon))
        if promises and found[0] <= 0:
            found = max(found, of_release(epsilon))
        return found

    def excess_of(found: tuple[float, str, str] | None) -> float | None:
        return None if found is None else found[0]

    low, high = _border(lambda epsilon: excess_of(look(epsilon)),
                        lambda epsilon: excess_of(of_words(epsilon)),
                        mechanism.epsilon, tolerance)  # fmt: skip
    if (binding := look(high)) is None:
        raise ParameterError("mechanism has no ε in the range looked at")
    said = [*_sentences(kept, max_unchanged, min_outputs, draws, attacked),
            *(p.sentence for p in promises)]  # fmt: skip
    promise = f"{', '.join(said)} ({len(names)} words measured)"
    table = Table.of_rows(sorted(curve, key=lambda row: row["epsilon"]))
    return Choice(low, binding[1], binding[2], table, mechanism.with_epsilon(low), promise)


@dataclass(frozen=True)
class _ReleasePromise:
    """A promise about a whole release: a bound on one of its consequences."""

    reason: str
    most: float
    consequence: Callable[[Mechanism], float]
    sentence: str


def _release_promises(
    mechanism: Mechanism,
    prior: Prior,
    releases: Mapping[str, float | None],
    factor: float,
    *,
    texts: Iterable[str] | None,
    model: NgramPrior | None,
) -> list[_ReleasePromise]:
    """Return the promises on bits and on words named in sentences, checked."""
    made = []
    max_bits, max_named, deniable = releases.values()
    for name, most in releases.items():
        if most is not None and not mechanism.has_law:
            raise ParameterError(f"{name} must be left out: this mechanism has no law to compute")
    if max_bits is not None:
        positive("max_bits", max_bits)
        written = "in the order of the vocabulary, by 1/(rank + 2.7)"
        if prior is not None and not isinstance(prior, str):
            written = "as often as the prior says"
        said = f"a release tells at most {max_bits:g} bits a word (words written {written})"
        made.append(_ReleasePromise("bits", max_bits, lambda m: Channel.of(m).bits(prior), said))
    if max_named is not None:
        share("max_named", max_named)
        known, reader = check_texts(texts, model)

        def named(at: Mechanism) -> float:
            return named_in_sentences(at, known, reader).high

        _check_named(mechanism, named, max_named)
        made.append(_ReleasePromise(
            "named", max_named, named,
            f"the strongest attacker names at most {max_named:g} of the content words of "
            f"{len(known):,} texts, up to the upper end of the interval",
        ))  # fmt: skip
    elif texts is not None or model is not None:
        raise ParameterError("max_named must be given with texts and model: they are for it")
    if deniable is not None:
        counted("min_deniable", deniable, 1, len(mechanism.space))

        def missing(at: Mechanism) -> float:
            counts = Channel.of(at).deniable(factor)
            return float(deniable / counts[counts > 0].min())

        made.append(_ReleasePromise("deniable", 1.0, missing, (
            f"every output is within a factor {factor:g} of its largest probability for at least "
            f"{deniable} words")))  # fmt: skip
    return made


def _check_named(mechanism: Mechanism, named: Callable[[Mechanism], float], most: float) -> None:
    """Refuse a bound that knowledge of the language alone exceeds.

    Without this check the search would take forty passes to find no ε.
    """
    try:
        at = mechanism.with_epsilon(mechanism.epsilon / 2**30)
    except FastdxError:
        return  # below the smallest ε of this mechanism
    if (known := named(at)) > most:
        raise ParameterError(
            f"no ε keeps the promise: max_named must be at least {known:.4g}, which an attacker "
            f"names of these texts by the language alone; got {most}"
        )


def _sentences(
    kept: float,
    max_unchanged: float | None,
    min_outputs: int | None,
    draws: int,
    attacked: Mapping[str, float | None],
) -> list[str]:
    """Return the promises about words, as parts of a sentence."""
    whom = "every word" if kept == 1 else f"the share {kept:g} of words"
    said = []
    if max_unchanged is not None:
        said.append(f"{whom} comes back unchanged with a probability of at most {max_unchanged:g}")
    if min_outputs is not None:
        said.append(f"{whom} has at least {min_outputs} distinct outputs in {draws} draws")
    if (reidentified := attacked["max_reidentified"]) is not None:
        said.append(f"an attacker names the word with a probability of at most {reidentified:g}")
    if (posterior := attacked["max_posterior"]) is not None:
        said.append(f"no output makes an attacker surer of a word than {posterior:g}")
    return said


def _check_promises(
    mechanism: Mechanism,
    max_unchanged: float | None,
    attacked: Mapping[str, float | None],
    prior: Prior,
) -> None:
    if max_unchanged is not None:
        share("max_unchanged", max_unchanged)
    for parameter, most in attacked.items():
        if most is not None and not (0 < most <= 1 and mechanism.has_law):
            what = "above 0, at most 1" if mechanism.has_law else "left out where there is no law"
            raise ParameterError(f"{parameter} must be {what}, got {most}")
        # The attacker knows this share without any output. The search would take forty passes to
        # find no ε.
        if most is not None and most < (known := float(prior_of(mechanism, prior).max())) - 1e-12:
            raise ParameterError(
                f"no ε keeps the promise: {parameter} must be at least {known:.4g}, the share of "
                f"the commonest word, which an attacker names without seeing anything; got {most}"
            )


def _border(
    excess: Callable[[float], float | None],
    excess_of_words: Callable[[float], float | None],
    start: float,
    tolerance: float,
) -> tuple[float, float]:
    """Return two ε around the border of the promise. Both functions must cache their values."""
    low, high = _bracket(excess, start)
    if (excess_of_words(high) or 0.0) > 0:
        # The measured words alone are cheaper: if the attacks keep the promise at their border, the
        # search ends there.
        kept, high = narrowed(excess_of_words, low, high, tolerance)
        if (excess(kept) or 0.0) <= 0:
            return kept, high
        high = kept
    return narrowed(excess, low, high, tolerance)


def _bracket(excess: Callable[[float], float | None], start: float) -> tuple[float, float]:
    """Return two ε, a factor of 2 apart: the first keeps the promise, the second does not."""
    epsilon, found = start, excess(start)
    for _ in range(40):
        if found is not None and found <= 0:
            if (further := excess(2 * epsilon)) is not None and further > 0:
                return epsilon, 2 * epsilon
            epsilon, found = 2 * epsilon, further
        else:
            if found is None:
                raise ParameterError(
                    f"no ε keeps the promise: the smallest this mechanism has is above {epsilon:g}"
                )
            before = excess(epsilon / 2)
            if before is not None and before <= 0:
                return epsilon / 2, epsilon
            epsilon, found = epsilon / 2, before
    raise ParameterError(f"no ε between {epsilon:g} and {start:g} decides the promise")


@dataclass(frozen=True)
class Match:
    """A mechanism at the ε at which it has the same consequence as another one."""

    epsilon: float
    """The second mechanism's ε."""
    mechanism: Mechanism
    """The second mechanism at that ε."""
    value: float
    """The first mechanism's consequence."""
    reached: float
    """The second mechanism's consequence at that ε."""


_CONSEQUENCES: dict[str, Callable[[Table], float]] = {
    "mean_unchanged": lambda t: float(t["N_w"].mean()),
    "worst_unchanged": lambda t: float(t["N_w"].max()),
    "mean_support": lambda t: -float(t["support"].mean()),
    "mean_S_w": lambda t: -float(t["S_w"].mean()),
}


def match(
    mechanism_a: Mechanism,
    mechanism_b: Mechanism,
    on: str = "mean_unchanged",
    *,
    words: Iterable[str] | None = None,
    draws: int = 1000,
    tolerance: float = 1e-3,
) -> Match:
    """Find the ε at which one mechanism has the same consequence as another one at its ε.

    Two mechanisms at equal ε have different consequences in general.

    Parameters
    ----------
    mechanism_a : Mechanism
        The reference, at its own ε.
    mechanism_b : Mechanism
        The mechanism whose ε is computed.
    on : str, optional
        The consequence: 'mean_unchanged', 'worst_unchanged', 'mean_support' or 'mean_S_w'.
    words : iterable of str, optional
        Words of both vocabularies. By default 200 words spread over the first vocabulary, without
        those that the second lacks.
    draws, tolerance : optional
        As for `choose_epsilon`.
    """
    check_tolerance(tolerance)
    one_of("on", on, _CONSEQUENCES)
    if words is None:
        other = mechanism_b.space
        words = [word for word in names_of(mechanism_a, spread(mechanism_a)) if word in other]
    words = list(words)
    measure = _CONSEQUENCES[on]

    def of(mechanism: Mechanism) -> float:
        return measure(statistics(mechanism, words, draws, near=0, inputs=False))

    target = of(mechanism_a)
    values: dict[float, float] = {}

    def excess(epsilon: float) -> float | None:
        if epsilon not in values:
            try:
                values[epsilon] = of(mechanism_b.with_epsilon(epsilon))
            except FastdxError:
                return None
        return values[epsilon] - target

    low, _ = narrowed(excess, *_bracket(excess, mechanism_b.epsilon), tolerance)
    return Match(low, mechanism_b.with_epsilon(low), abs(target), abs(values[low]))
