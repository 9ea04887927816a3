"""ε by its consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from fastdx._shared.rounded import down
from fastdx.attacks import Prior, prior_of, reidentification
from fastdx.calibration.measures import SAMPLE, measured_ids, names_of, statistics, summary
from fastdx.calibration.search import check_tolerance, log_ratio, narrowed
from fastdx.calibration.table import Table
from fastdx.calibration.told import bits_of, check_texts, named_in_sentences, refuse_lawless
from fastdx.channel import NgramPrior
from fastdx.exceptions import FastdxError, ParameterError
from fastdx.mechanisms import Mechanism

__all__ = ["Choice", "Match", "choose_epsilon", "match"]


@dataclass(frozen=True)
class Choice:
    """An ε and why. Printed, it is a sentence."""

    epsilon: float
    """The largest ε that keeps the promise (for a certified Tem its nominal one)."""
    word: str
    """The word that binds; empty where all words or texts together do ('bits', 'named')."""
    reason: str
    """Which promise a larger ε would break: 'unchanged', 'outputs', 'reidentified', 'posterior',
    'bits' or 'named'."""
    curve: Table
    """What was looked at: epsilon, and mean and worst of N_w, support, S_w."""
    mechanism: Mechanism
    """The mechanism at that ε."""
    promise: str
    """The promise, as a sentence."""

    def __str__(self) -> str:
        """Return the choice as a sentence."""
        whole = {"bits": "the bits bind", "named": "the texts bind (named)"}
        binds = whole.get(self.reason, f"{self.word!r} binds ({self.reason})")
        return f"ε = {down(self.epsilon, 4)} is the largest at which {self.promise}; {binds}."


def choose_epsilon(
    mechanism: Mechanism,
    *,
    max_unchanged: float = 0.5,
    min_outputs: int = 300,
    max_reidentified: float | None = None,
    max_posterior: float | None = None,
    max_bits: float | None = None,
    max_named: float | None = None,
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

    Parameters
    ----------
    mechanism : Mechanism
        Any; its own ε does not matter.
    max_unchanged : float, optional
        No word comes back unchanged with a larger probability.
    min_outputs : int, optional
        Every word has at least so many distinct outputs in `draws` draws (for Tem: expected).
    max_reidentified : float, optional
        An attacker who knows the mechanism and `prior` names the word that was written with no
        larger probability (`reidentification`). Needs a mechanism with a law.
    max_posterior : float, optional
        No output makes that attacker more certain of any word. Needs a mechanism with a law.
    max_bits : float, optional
        A release tells no more bits of a word (`Channel.bits`): n words no more than n times that
        of their text, whoever reads them. Needs a mechanism with a law.
    max_named : float, optional
        The strongest attacker who knows the mechanism and `model` names no larger share of the
        content words of `texts` in their sentences (`sentence_attack`). What counts is the upper
        end of the 95% interval over texts. Every ε is tried on the same draws. Needs a mechanism
        with a law.
    texts : iterable of str, optional
        Texts like those that are to be protected, which the model has not seen; for `max_named`.
    model : NgramPrior, optional
        What the attacker knows of the language, over the mechanism's words; for `max_named`.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written, for `max_reidentified`, `max_posterior` (by default all
        alike, as for `reidentification`) and `max_bits` (by default 'rank', as for `Channel.bits`).
    quantile : 'worst' or float, optional
        'worst': the promise holds for every measured word; a number q: for the share q of them.
    words : iterable of str, optional
        As for `statistics`.
    draws : int, optional
        Draws a word.
    tolerance : float, optional
        Of ε, relative.
    progress : callable, optional
        Called now and then with a growing count.

    Returns
    -------
    Choice
        ``.epsilon``, ``.word``, ``.curve``, ``.mechanism``.

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
    _check_promises(mechanism, max_unchanged, attacked, prior)
    told = _told(mechanism, prior, max_bits, max_named, texts=texts, model=model)
    check_tolerance(tolerance)
    _check_least(mechanism, told)
    share = 1.0 if quantile == "worst" else quantile
    if isinstance(share, str) or not 0 < share <= 1:
        raise ParameterError(f"quantile must be 'worst' or between 0 and 1, got {quantile!r}")
    names = names_of(mechanism, measured_ids(mechanism, words))
    curve: list[dict[str, float]] = []

    # How near an ε is to breaking a promise, as a logarithm: above 0 it is broken.
    @cache  # ends of intervals are asked for again
    def of_words(epsilon: float) -> tuple[float, str, str] | None:
        try:
            at = mechanism.with_epsilon(epsilon)
        except FastdxError:
            return None  # below the smallest ε this mechanism has
        table = statistics(at, names, draws, near=0, inputs=False, progress=progress)
        curve.append(summary(epsilon, table))
        unchanged = table["N_w"] / max_unchanged
        outputs = min_outputs / np.maximum(table["S_w"], 1e-9)
        strain = np.maximum(unchanged, outputs)
        order = np.argsort(strain, kind="stable")
        at_quantile = order[max(int(np.ceil(share * len(order))) - 1, 0)]
        reason = "unchanged" if unchanged[at_quantile] >= outputs[at_quantile] else "outputs"
        return log_ratio(float(strain[at_quantile]), 1.0), names[at_quantile], reason

    @cache
    def of_attacker(epsilon: float) -> tuple[float, str, str]:
        found = reidentification(mechanism.with_epsilon(epsilon), prior, progress=progress)
        strains = [(-np.inf, "", "")]
        if max_reidentified is not None:
            strains.append((log_ratio(found.success[1], max_reidentified), found.word or "",
                            "reidentified"))  # fmt: skip
        if max_posterior is not None:
            strains.append((log_ratio(found.worst_posterior, max_posterior), found.word or "",
                            "posterior"))  # fmt: skip
        return max(strains)

    @cache
    def of_release(epsilon: float) -> tuple[float, str, str]:
        at = mechanism.with_epsilon(epsilon)
        return max((log_ratio(t.consequence(at), t.most), "", t.reason) for t in told)

    def look(epsilon: float) -> tuple[float, str, str] | None:
        found = of_words(epsilon)
        # A pass over all laws, which decides nothing where the measured words break the promise.
        if found is None or found[0] > 0:
            return found
        if set(attacked.values()) != {None}:
            found = max(found, of_attacker(epsilon))
        if told and found[0] <= 0:
            found = max(found, of_release(epsilon))
        return found

    def excess_of_words(epsilon: float) -> float | None:
        return None if (found := of_words(epsilon)) is None else found[0]

    def excess(epsilon: float) -> float | None:
        return None if (found := look(epsilon)) is None else found[0]

    low, high = _border(excess, excess_of_words, mechanism.epsilon, tolerance)
    if (binding := look(high)) is None:
        raise ParameterError("mechanism has no ε in the range looked at")
    curve.sort(key=lambda row: row["epsilon"])
    whom = "every word" if share == 1 else f"the share {share:g} of words"
    promise = (
        f"{whom} comes back unchanged with a probability of at most {max_unchanged:g} and has at "
        f"least {min_outputs} distinct outputs in {draws} draws ({len(names)} words measured)"
    )
    promise += _sentences_of(max_reidentified, max_posterior, told)
    table = Table(**{name: np.array([row[name] for row in curve]) for name in curve[0]})
    return Choice(low, binding[1], binding[2], table, mechanism.with_epsilon(low), promise)


@dataclass(frozen=True)
class _Told:
    """A promise on what whole releases tell."""

    reason: str
    most: float
    consequence: Callable[[Mechanism], float]
    sentence: str


def _told(
    mechanism: Mechanism,
    prior: Prior,
    max_bits: float | None,
    max_named: float | None,
    *,
    texts: Iterable[str] | None,
    model: NgramPrior | None,
) -> list[_Told]:
    """Return the promises on bits and on words named in sentences, checked."""
    made = []
    if max_bits is not None:
        refuse_lawless("max_bits", mechanism)
        if not 0 < max_bits < np.inf:
            raise ParameterError(f"max_bits must be above 0 and finite, got {max_bits}")
        written = "in the order of the vocabulary, by 1/(rank + 2.7)"
        if prior is not None and not isinstance(prior, str):
            written = "as often as the prior says"
        sentence = f"a release tells at most {max_bits:g} bits a word (words written {written})"
        made.append(_Told("bits", max_bits, lambda at: bits_of(at, prior), sentence))
    if max_named is not None:
        refuse_lawless("max_named", mechanism)
        if not 0 < max_named <= 1:
            raise ParameterError(f"max_named must be above 0, at most 1, got {max_named}")
        known, reader = check_texts(texts, model)
        made.append(_Told(
            "named", max_named, lambda at: named_in_sentences(at, known, reader).high,
            f"the strongest attacker names at most {max_named:g} of the content words of "
            f"{len(known):,} texts, up to the upper end of the interval",
        ))  # fmt: skip
    elif texts is not None or model is not None:
        raise ParameterError("max_named must be given with texts and model: they are for it")
    return made


def _check_least(mechanism: Mechanism, told: list[_Told]) -> None:
    """Refuse what the language alone breaks: a search would take forty passes to find no ε."""
    if not (named := [t for t in told if t.reason == "named"]):
        return
    least = mechanism.epsilon / 2**30
    try:
        at = mechanism.with_epsilon(least)
    except FastdxError:
        return  # below the smallest ε this mechanism has
    for t in named:
        if (known := t.consequence(at)) > t.most:
            raise ParameterError(
                f"no ε keeps the promise: max_{t.reason} must be at least {known:.4g}, which an "
                f"attacker names of these texts by the language alone; got {t.most}"
            )


def _sentences_of(
    max_reidentified: float | None, max_posterior: float | None, told: list[_Told]
) -> str:
    sentences = [t.sentence for t in told]
    if max_posterior is not None:
        sentences.insert(0, f"no output makes an attacker surer of a word than {max_posterior:g}")
    if max_reidentified is not None:
        named = f"an attacker names the word with a probability of at most {max_reidentified:g}"
        sentences.insert(0, named)
    return "".join(f", {sentence}" for sentence in sentences)


def _check_promises(
    mechanism: Mechanism,
    max_unchanged: float,
    attacked: Mapping[str, float | None],
    prior: Prior,
) -> None:
    if not 0 < max_unchanged <= 1:
        raise ParameterError(f"max_unchanged must be above 0, at most 1, got {max_unchanged}")
    for parameter, most in attacked.items():
        if most is not None and not (0 < most <= 1 and mechanism.has_law):
            what = "above 0, at most 1" if mechanism.has_law else "left out where there is no law"
            raise ParameterError(f"{parameter} must be {what}, got {most}")
        # Known with no output seen; the search would take forty passes to find no ε.
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
    """Two ε around the border of the promise; both functions remember what they were asked."""
    low, high = _bracket(excess, start)
    if (excess_of_words(high) or 0.0) > 0:
        # The words alone first: where the attacker agrees at their border, that is it.
        kept, high = narrowed(excess_of_words, low, high, tolerance)
        if (excess(kept) or 0.0) <= 0:
            return kept, high
        high = kept
    return narrowed(excess, low, high, tolerance)


def _bracket(excess: Callable[[float], float | None], start: float) -> tuple[float, float]:
    """Two ε, the first keeping the promise and the second not, a factor of 2 apart."""
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
    """Two mechanisms at an equal consequence."""

    epsilon: float
    """The second mechanism's ε."""
    mechanism: Mechanism
    """The second mechanism at that ε."""
    value: float
    """The first mechanism's consequence."""
    reached: float
    """The second's."""


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
    """Find the ε at which a mechanism has the consequence that another has: equal ε is not that.

    Parameters
    ----------
    mechanism_a : Mechanism
        The model, at its own ε.
    mechanism_b : Mechanism
        Its ε is solved for.
    on : str, optional
        'mean_unchanged', 'worst_unchanged', 'mean_support' or 'mean_S_w'.
    words : iterable of str, optional
        Words of both vocabularies; by default those of 200 spread over the first that the second
        has too.
    draws : int, optional
        Draws a word.
    tolerance : float, optional
        Of ε, relative.
    """
    check_tolerance(tolerance)
    if on not in _CONSEQUENCES:
        raise ParameterError(f"on must be one of {sorted(_CONSEQUENCES)}, got {on!r}")
    if words is None:
        space, other = mechanism_a.space, mechanism_b.space
        spread = np.unique(np.linspace(0, len(space) - 1, SAMPLE).astype(int))
        words = [space.words[i] for i in spread if space.words[i] in other]
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
