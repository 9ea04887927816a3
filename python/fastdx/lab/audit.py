"""Tests of the claim Pr[M(w)=y] ≤ e^(ε·d(w,w'))·Pr[M(w')=y].

`certify` computes the ε of a mechanism with a law. `likelihood_ratio` tests any black box by draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import (
    Certificate,
    ChannelCore,
    Embedding,
    WordGraph,
    binomial_bounds,
    largest_loss,
)
from fastdx._core import certify as _certify
from fastdx._shared.checks import at_least, counted, inside
from fastdx._shared.rounded import down, up
from fastdx.calibration.measures import measured_ids, spread
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.lab.laws import Law
from fastdx.lab.laws.base import distance_matrix, stacked
from fastdx.lab.laws.loss import Logs, Worst
from fastdx.mechanisms import Mechanism, Tem

__all__ = [
    "Certificate",
    "Finding",
    "LargestLoss",
    "Report",
    "certify",
    "likelihood_ratio",
    "near_losses",
]

Word = Hashable
Metric: TypeAlias = Embedding | WordGraph | ArrayLike | Callable[[str, str], float]
"""Distances of a mechanism's words: a space, a (V, V) matrix, or a function of two words."""

ROUNDED_UP = 1 + 1e-10
"""A factor far above the rounding of the computation; it makes a result an upper bound."""


@dataclass(frozen=True)
class LargestLoss:
    """The largest privacy loss of a mechanism, over all pairs of words and all outputs.

    It prints as a sentence.
    """

    epsilon: float
    """The largest log-ratio per unit of distance."""
    pair: tuple[str, str]
    """The two words at which `epsilon` is reached, the likelier one first."""
    output: str
    """The output at which `epsilon` is reached."""
    local: float
    """The largest log-ratio of any two words: the ε of local differential privacy."""
    local_pair: tuple[str, str]
    """The two words at which `local` is reached, the likelier one first."""
    local_output: str
    """The output at which `local` is reached."""
    metric: str
    """The metric's name."""

    def __str__(self) -> str:
        """Return it as a sentence."""
        (a, b), (c, d) = self.pair, self.local_pair
        return (
            f"ε = {up(self.epsilon)} per unit of {self.metric} distance ({a!r} and {b!r}, at the "
            f"output {self.output!r}), and ε = {up(self.local)} for any two words ({c!r} and "
            f"{d!r}, at {self.local_output!r}): the largest log-ratios of all pairs and outputs, "
            "the vocabulary being public."
        )


@overload
def certify(mechanism: Tem, *, metric: None = None) -> Certificate: ...
@overload
def certify(mechanism: Law, *, metric: Metric | None = None) -> LargestLoss: ...
@overload
def certify(mechanism: Mechanism, *, metric: Metric | None = None) -> Certificate | LargestLoss: ...
def certify(
    mechanism: Mechanism | Law, *, metric: Metric | None = None
) -> Certificate | LargestLoss:
    """Compute the ε that a mechanism really has on its vocabulary.

    ε is the supremum of |ln Pr[y|w] - ln Pr[y|w']| / d(w, w') over all pairs of words and all
    outputs. For Tem it is at most the nominal ε, and at least half of it unless γ is below the
    distances. The result assumes that the embedding is public.

    Without `metric`, a Tem gets a certificate that its guarantee can use (``certified=True``). For
    every other mechanism with a law, and for a Tem with `metric`, the function looks at all pairs.
    It then holds all laws in memory (eight bytes for each word and output).

    Parameters
    ----------
    mechanism : Mechanism or Law
        A Tem, another mechanism with a law, or a `laws.Law`. For a Law its own numbers are
        certified. ``FiniteLaw(law=law)`` draws integers, none below 2⁻¹⁰⁰ of the row's largest, so
        its ε may be smaller.
    metric : Embedding, WordGraph, array_like of float, or callable, optional
        Distances of the same words in the same order; by default the mechanism's own. An array has
        the shape (V, V); a function takes two words. Distances must be symmetric, not negative, and
        0 from a word to itself. Pairs at distance infinity are left out.

    Returns
    -------
    Certificate or LargestLoss
        ``.epsilon``, and the pair of words and the output at which it is reached. A LargestLoss
        also has ``.local``, the ε of local differential privacy.

    Raises
    ------
    InputTypeError
        The argument is no mechanism.
    ParameterError
        The mechanism has no law, or the metric is no metric on these words.
    TooLargeError
        The laws take more than 8 GiB.
    """
    if not isinstance(mechanism, Mechanism | Law):
        raise InputTypeError(
            f"mechanism must be a Mechanism or a Law, not {type(mechanism).__name__}"
        )
    if isinstance(mechanism, Tem) and metric is None and not mechanism.remap:
        return _certify(mechanism)
    space = mechanism.space if metric is None else metric
    if isinstance(space, Embedding | WordGraph):
        if isinstance(mechanism, Mechanism):
            epsilon, (a, b, y), local, (c, d, z) = largest_loss(mechanism, space)
            unit, any_two = Worst(epsilon, (a, b), y), Worst(local, (c, d), z)
            return _loss(mechanism.space.words, unit, any_two, space.metric)
        if space is not mechanism.space and tuple(space.words) != tuple(mechanism.space.words):
            raise ParameterError("metric must have the words of the law, in their order")
    return _of_matrix(mechanism, space)


def _loss(words: Sequence[str], unit: Worst, local: Worst, metric: str) -> LargestLoss:
    (epsilon, (a, b), y), (most, (c, d), z) = unit, local
    return LargestLoss(epsilon, (words[a], words[b]), words[y], most, (words[c], words[d]),
                       words[z], metric)  # fmt: skip


def _of_matrix(mechanism: Mechanism | Law, metric: Metric) -> LargestLoss:
    """Look at all pairs of words, by a matrix of all laws and the distances."""
    words = mechanism.space.words
    distances, name = _distances(metric, words)
    if isinstance(mechanism, Law):
        matrix = mechanism.matrix()
    elif mechanism.has_law:
        matrix = stacked(lambda i: mechanism.probabilities(words[i]), len(words))
    else:
        raise ParameterError("mechanism must be one whose law can be computed")
    logs = Logs.of(matrix)
    worst, local = (found._replace(loss=found.loss * ROUNDED_UP)
                    for found in (logs.per_distance(distances), logs.local()))  # fmt: skip
    return _loss(words, worst, local, name)


def _distances(metric: Metric, words: Sequence[str]) -> tuple[NDArray[np.float64], str]:
    """Return all distances, shape (V, V), and the metric's name; refuse what is no metric."""
    count = len(words)
    if isinstance(metric, Embedding | WordGraph):
        return distance_matrix(metric), metric.metric
    if callable(metric):
        found = np.zeros((count, count))
        for i, word in enumerate(words):
            for j in range(i + 1, count):
                found[i, j] = found[j, i] = metric(word, words[j])
        name = "given"
    else:
        found, name = np.asarray(metric, float), "given"
        if found.shape != (count, count):
            raise ParameterError(f"metric must have the shape {(count, count)}, got {found.shape}")
    wrong = np.argwhere(
        ~(found >= 0) | (found != found.T) | (np.eye(count, dtype=bool) & (found != 0))
    )
    if len(wrong):
        i, j = wrong[0]
        raise ParameterError(
            "metric must be symmetric, not negative, and 0 from a word to itself; it is "
            f"{found[i, j]} from word {i} to word {j}, and {found[j, i]} back"
        )
    if count > 1 and np.isinf(found).sum() == count * (count - 1):
        raise ParameterError("metric must hold a finite distance: without one, any ε holds")
    return found, name


@dataclass(frozen=True)
class Finding:
    """One tested event: an output, or a set of outputs."""

    word: Word
    """The word whose probability of the event is the larger one."""
    other: Word
    """The other word."""
    distance: float
    """Their distance."""
    outputs: tuple[Any, ...]
    """The outputs of the event, or the first ten of them."""
    size: int
    """The number of outputs of the event."""
    hits: int
    """Draws of the word that hit the event."""
    other_hits: int
    """Draws of the other word that hit it."""
    loss: float
    """A lower bound on ln Pr[event|word] - ln Pr[event|other]."""
    epsilon: float
    """`loss` per unit of distance; infinite at distance 0."""


@dataclass(frozen=True)
class Report:
    """The verdict of an audit. It prints as a paragraph."""

    violated: bool
    """Whether the draws refute the claim with this confidence."""
    epsilon: float
    """The claimed ε."""
    epsilon_lower_bound: float
    """A lower bound on the true ε per unit of distance, with this confidence."""
    worst: tuple[Finding, ...]
    """The ten findings with the largest ε, the largest first."""
    tests: int
    """The number of events tested; the confidence holds for all of them together."""
    draws: int
    """Draws of each word."""
    confidence: float
    """The probability that a true claim is not refuted is at least this."""

    def __str__(self) -> str:
        """Return the verdict."""
        verdict = "REFUTED" if self.violated else "not refuted"
        text = (
            f"ε = {self.epsilon:g} per unit of distance is {verdict}: with confidence "
            f"{self.confidence} the true ε is at least {down(self.epsilon_lower_bound, 4)} "
            f"({self.tests} events, {self.draws} draws a word)."
        )
        if self.worst:
            w = self.worst[0]
            outputs = ", ".join(map(repr, w.outputs[:3])) + (", …" if w.size > 3 else "")
            text += (
                f" Worst: {w.word!r} against {w.other!r} at distance {w.distance:.4g}, outputs "
                f"{outputs}: {w.hits} against {w.other_hits} hits, a log-ratio of at least "
                f"{down(w.loss, 4)}."
            )
        return text


def likelihood_ratio(  # noqa: PLR0917
    sample: Callable[[Any, int], Iterable[Any]],
    pairs: Iterable[tuple[Any, Any]],
    distance: Callable[[Any, Any], float] | Embedding | WordGraph,
    epsilon: float,
    draws: int = 100_000,
    confidence: float = 0.999,
    *,
    slack: float = 0.0,
    events: int = 4,
) -> Report:
    """Try to refute a claim of metric differential privacy about a black box.

    The draws of every word are split in two halves. The first half chooses events where a violation
    is likeliest: for each ordered pair, the single outputs of the largest excess over the claim,
    and a set of outputs with an excess. The second half tests these events with exact
    (Clopper-Pearson) bounds, corrected for the number of tests. So a true claim is refuted with a
    probability of at most 1 - confidence.

    Parameters
    ----------
    sample : callable
        ``sample(word, size)`` returns `size` outputs: ids, strings or other hashable objects. The
        method ``sample`` of a mechanism is such a function.
    pairs : iterable of (word, word)
        The inputs to compare, in both directions: hashable, and accepted by `sample` and
        `distance`.
    distance : callable, Embedding or WordGraph
        ``distance(a, b)`` ≥ 0, or an object with such a method. At distance infinity a claim allows
        everything, so such a pair is an error.
    epsilon : float
        The claimed ε, per unit of distance.
    draws : int, optional
        Draws of each word, at least 2.
    confidence : float, optional
        The confidence of the verdict.
    slack : float, optional
        The amount that the claim adds to a log-ratio (`Guarantee.slack`). It must be finite: take
        it from a mechanism without a seed.
    events : int, optional
        Single outputs tested for each ordered pair.

    Raises
    ------
    ParameterError
        There is no pair, a parameter lies outside its range, the claim allows everything (a slack
        or a distance is infinite), or `sample` returns a wrong number of outputs.
    """
    pairs = [tuple(pair) for pair in pairs]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ParameterError("pairs must be at least one pair of words")
    for name, value in (("epsilon", epsilon), ("slack", slack)):
        if not 0 <= value < np.inf:
            raise ParameterError(
                f"{name} must be finite, at least 0, got {value}: of a claim without a bound (a "
                "seeded mechanism's) nothing can be refuted"
            )
    inside("confidence", confidence)
    at_least("draws", draws, 2)
    at_least("events", events, 1)
    distances = _finite(pairs, distance, epsilon, slack)
    words = list(dict.fromkeys(word for pair in distances for word in pair))
    first = draws // 2
    second = draws - first
    seen = {word: (_count(sample, word, first), _count(sample, word, second)) for word in words}
    planned: list[tuple[Any, Any, float, list[Any]]] = []
    for (a, b), d in distances.items():
        for event in _events(seen[a][0], seen[b][0], epsilon * d + slack, first, events):
            planned.append((a, b, d, event))
    # Each finding needs a lower bound on one probability and an upper bound on another.
    alpha = (1 - confidence) / (2 * max(len(planned), 1))
    hits = np.array([sum(seen[a][1].get(y, 0) for y in e) for a, _, _, e in planned], np.uint64)
    others = np.array([sum(seen[b][1].get(y, 0) for y in e) for _, b, _, e in planned], np.uint64)
    low = binomial_bounds(hits, second, alpha)[0]
    high = binomial_bounds(others, second, alpha)[1]
    with np.errstate(divide="ignore"):
        losses = np.log(low) - np.log(high) - slack
    findings = []
    for (a, b, d, event), n, m, loss in zip(planned, hits, others, losses, strict=True):
        unit = loss / d if d > 0 else (np.inf if loss > 0 else -np.inf)
        findings.append(Finding(a, b, d, tuple(event[:10]), len(event), int(n), int(m),
                                float(loss), float(unit)))  # fmt: skip
    findings.sort(key=lambda f: f.epsilon, reverse=True)
    bound = max([0.0, *(f.epsilon for f in findings)])
    return Report(bound > epsilon, float(epsilon), bound, tuple(findings[:10]), len(findings),
                  draws, confidence)  # fmt: skip


def _finite(
    pairs: Sequence[tuple[Any, ...]],
    distance: Callable[[Any, Any], float] | Embedding | WordGraph,
    epsilon: float,
    slack: float,
) -> dict[tuple[Any, Any], float]:
    """Return the distances of all pairs both ways; refuse a pair for which all is allowed."""
    between = distance if callable(distance) else distance.distance
    distances = {}
    for at, (one, other) in enumerate(pairs):
        for a, b in ((one, other), (other, one)):
            d = float(between(a, b))
            if not (0 <= d < np.inf and np.isfinite(epsilon * d + slack)):
                raise ParameterError(
                    f"pairs[{at}] must be two words at a finite distance, at least 0, got {d} at "
                    f"epsilon = {epsilon:g}: otherwise nothing can be refuted. Leave the pair out"
                )
            if a != b:
                distances[a, b] = d
    if not distances:
        raise ParameterError("pairs must hold two different words: nothing can be refuted")
    return distances


def _count(sample: Callable[[Any, int], Iterable[Any]], word: Any, size: int) -> dict[Any, int]:
    drawn = sample(word, size)
    outputs = drawn.tolist() if isinstance(drawn, np.ndarray) else list(drawn)
    if len(outputs) != size:
        raise ParameterError(
            f"sample({word!r}, {size}) must return {size} outputs, got {len(outputs)}"
        )
    return Counter(outputs)


def _events(
    ours: dict[Any, int], theirs: dict[Any, int], bound: float, draws: int, most: int
) -> Sequence[list[Any]]:
    """Return the single outputs, and one set, whose excess over the claim is most significant."""
    outputs = list(ours)
    n = np.array([ours[y] for y in outputs], float)
    m = np.array([theirs.get(y, 0) for y in outputs], float)
    allowed = np.exp(min(bound, 700.0)) * m
    # Excess in standard deviations, as if the claim held with equality.
    spread = np.sqrt(n * (1 - n / draws) + np.exp(min(2 * bound, 700.0)) * (m + 0.5) + 0.5)
    score = (n - allowed) / spread
    order = np.argsort(-score)
    chosen = [[outputs[i]] for i in order[:most]]
    # Sets of the first 1, 2, … outputs with an excess: take the one with the most significant sum.
    above = order[score[order] > 0]
    if len(above) > 1:
        sums, allowances = np.cumsum(n[above]), np.cumsum(allowed[above])
        total = (sums - allowances) / np.sqrt(sums + np.exp(min(bound, 350.0)) * allowances + 1)
        size = int(np.argmax(total)) + 1
        if size > 1:
            chosen.append([outputs[i] for i in above[:size]])
    return chosen


def near_losses(
    mechanism: Mechanism,
    words: Iterable[str] | None = None,
    near: int = 20,
) -> NDArray[np.float64]:
    """Compute how well the best output can distinguish a word from its nearest words.

    Returns float64, shape (words,): the largest abs(ln Pr[y|w] - ln Pr[y|w']) over all outputs y
    and the `near` nearest words w'. Takes a mechanism with a law, and by default 200 words spread
    over the vocabulary.
    """
    ids = measured_ids(mechanism, words) if words is not None else spread(mechanism)
    near = counted("near", near, 0, 2**31)
    core, found = ChannelCore(mechanism), np.zeros(len(ids))
    for at, id in enumerate(ids):
        order = np.argsort(mechanism.space.distances(mechanism.space.words[id]), kind="stable")
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(core.laws([id, *order[order != id][:near]], False))
            # An output that neither word can have gives NaN, which counts nothing.
            found[at] = np.fmax.reduce(np.abs(logs[1:] - logs[0]), axis=None, initial=0.0)
    return found
