"""`choose_epsilon` finds an ε by its consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, inf, isfinite, log, log1p, nan
from sys import float_info

from fastdx._shared.checks import between, counted, positive, share
from fastdx._shared.rounded import down
from fastdx.calibration.measures import Table, measured_ids, statistics
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
    promises = {"max_unchanged": max_unchanged, "min_outputs": min_outputs,
                "max_reidentified": max_reidentified, "max_posterior": max_posterior,
                "max_bits": max_bits, "min_deniable": min_deniable,
                "max_named": max_named}  # fmt: skip
    given = {name: bound for name, bound in promises.items() if bound is not None}
    given = given or {"max_unchanged": MOST_UNCHANGED}
    for name, bound in given.items():
        _check_promise(name, bound, mechanism)
    attacked: list[str] = []
    if max_named is not None:
        attacked, model = check_texts(texts, model)
    elif texts is not None or model is not None:
        raise ParameterError("max_named must be given with texts and model: they are for it")
    between("tolerance", tolerance, 1e-9, 1)
    names = None if words is None else list(words)
    count = len(measured_ids(mechanism, names))

    @lru_cache(maxsize=1)  # two promises look at one table
    def table(at: Mechanism) -> Table:
        return statistics(at, names, draws, near=0, inputs=False)

    def consequence(name: str, at: Mechanism) -> tuple[float, str]:
        """The number that is bounded, and the word that it is about, if it is about one."""
        if name == "max_unchanged":
            row = table(at)[table(at)["N_w"].argmax()]
            return row["N_w"], row["word"]
        if name == "min_outputs":
            row = table(at)[table(at)["S_w"].argmin()]
            return row["S_w"], row["word"]
        if name == "max_bits":
            return Channel.of(at).bits(prior), ""
        if name == "min_deniable":
            counts = Channel.of(at).deniable(factor)
            return counts[counts > 0].min(), ""
        if name == "max_named" and model is not None:
            return named_in_sentences(at, attacked, model).high, ""
        success, posterior, word, _ = best_guess(at, prior_of(at, prior))
        return posterior if name == "max_posterior" else success[0], word

    @cache  # the search evaluates ends of intervals again
    def look(epsilon: float) -> tuple[float, str, str, float]:
        """The log-ratio of consequence and bound, the promise that binds, the word, the number."""
        try:
            at = mechanism.with_epsilon(epsilon)
        except FastdxError:
            return inf, "", "", nan  # below the smallest ε of this mechanism
        found = -inf, "", "", nan
        for name, bound in given.items():
            value, word = consequence(name, at)
            pair = (value, bound) if name.startswith("max") else (bound, value)
            found = max(found, (log_ratio(*pair), name, word, float(value)))
            # If one is broken, the others' passes over all laws would decide nothing.
            if found[0] > 0:
                break
        return found

    def excess(epsilon: float) -> float:
        return look(epsilon)[0]

    if excess(mechanism.epsilon) > 0:
        beyond, name, _, value = look(mechanism.epsilon / 2**30)
        if 0 < beyond < inf:  # the search would take forty passes to find none
            least = "least" if name.startswith("max") else "most"
            raise ParameterError(f"no ε keeps the promise: {name} must be at {least} {value:.4g}, "
                                 f"what it is where ε is nearly 0; got {given[name]}")  # fmt: skip
    low, high = narrowed(excess, *_bracket(excess, mechanism.epsilon), tolerance)
    beyond, binding, word, _ = look(high)
    if beyond == inf:
        raise ParameterError("mechanism has no ε in the range looked at")
    by_rank = prior is None or isinstance(prior, str)
    how = "in the order of the vocabulary, by 1/(rank + 2.7)" if by_rank else "as the prior says"
    sentences = {
        "max_unchanged": "every word comes back unchanged with a probability of at most {:g}",
        "min_outputs": f"every word has at least {{}} distinct outputs in {draws} draws",
        "max_reidentified": "an attacker names the word with a probability of at most {:g}",
        "max_posterior": "no output makes an attacker surer of a word than {:g}",
        "max_bits": f"a release tells at most {{:g}} bits a word (words written {how})",
        "min_deniable": f"every output is within a factor {factor:g} of its largest probability "
                        "for at least {} words",
        "max_named": "the strongest attacker names at most {:g} of the content words of "
                     f"{len(attacked):,} texts, up to the upper end of the interval",
    }  # fmt: skip
    said = ", ".join(sentences[name].format(bound) for name, bound in given.items())
    return Choice(low, word, binding[4:], mechanism.with_epsilon(low),
                  f"{said} ({count} words measured)")  # fmt: skip


def _check_promise(name: str, bound: float, mechanism: Mechanism) -> None:
    if name not in ("max_unchanged", "min_outputs") and not mechanism.has_law:
        raise ParameterError(f"{name} must be left out: this mechanism has no law to compute")
    if name == "min_deniable":
        counted(name, bound, 1, len(mechanism.space))
    elif name == "max_bits":
        positive(name, bound)
    elif name != "min_outputs":
        share(name, bound)


def _bracket(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """Return two ε, a factor of 2 apart: the first keeps the promise, the second does not."""
    epsilon, step = start, 2.0 if excess(start) <= 0 else 0.5
    for _ in range(40):
        if excess(epsilon) == inf:
            raise ParameterError(
                f"no ε keeps the promise: the smallest this mechanism has is above {epsilon:g}"
            )
        if (excess(epsilon) <= 0) != (excess(epsilon * step) <= 0):
            return min(epsilon, epsilon * step), max(epsilon, epsilon * step)
        epsilon *= step
    raise ParameterError(f"no ε between {epsilon:g} and {start:g} decides the promise")


def log_ratio(value: float, most: float) -> float:
    """Return ln(value / most), an excess that is nearly linear in ln ε."""
    if value > most:  # stays positive even if the quotient rounds to 1
        return max(log(value / max(most, 1e-300)), float_info.min)
    return log(value / most) if value > 0 else -inf


def narrowed(
    excess: Callable[[float], float], low: float, high: float, tolerance: float
) -> tuple[float, float]:
    """Narrow two ε around the border of a promise until their ratio is at most 1 + tolerance.

    `excess` is at most 0 where the promise is kept, as at `low`, above 0 where it is broken, and
    infinite where there is no such mechanism. It is evaluated at both ends too, so an expensive one
    should be cached.

    Uses regula falsi over ln ε and halves the value at an end that stays (the Illinois rule). If
    two steps have not halved the interval, the next step halves it. So the search is never much
    slower than bisection, and for a smooth excess it takes a third of the evaluations.
    """
    a, b = log(low), log(high)
    at_a, at_b = excess(low), excess(high)
    close = log1p(tolerance)
    widths, kept_before = [inf, inf], None
    while (width := b - a) > close:
        x = (a + b) / 2
        if width <= widths[-2] / 2 and isfinite(at_a) and isfinite(at_b):
            x = a - at_a * width / (at_b - at_a)
        # A step that lands this near an end ends the search if the border lies between them.
        margin = min(0.9 * close, width / 2)
        epsilon = exp(min(max(x, a + margin), b - margin))
        found = excess(epsilon)
        kept = found <= 0
        if kept:
            low, a, at_a = epsilon, log(epsilon), found
            at_b /= 2 if kept_before is True else 1
        else:
            high, b, at_b = epsilon, log(epsilon), found
            at_a /= 2 if kept_before is False else 1
        kept_before = kept
        widths.append(width)
    return low, high
