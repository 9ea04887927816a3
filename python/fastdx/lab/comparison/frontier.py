"""`frontier` compares several mechanisms; `choose_cover` chooses a cover and its ε."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import nan
from typing import Any, cast

import numpy as np

from fastdx._core import Cover, Embedding, WordGraph
from fastdx.calibration.measures import near_losses
from fastdx.calibration.search import check_tolerance, log_ratio, narrowed
from fastdx.calibration.table import Table
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import check_texts, named_in_sentences, prior_of
from fastdx.channel.receiver import Prior
from fastdx.exceptions import ParameterError
from fastdx.lab import audit
from fastdx.lab.attacks import mean_similarity, reidentification, sentence_attack
from fastdx.lab.laws import Law
from fastdx.lab.laws.plane import computable
from fastdx.mechanisms import Mechanism, Tem
from fastdx.mechanisms.finite_law import drawn, is_law

SUMMED = 50_000
"""The largest vocabulary for which `frontier` computes the capacity, a sum over all laws."""


def frontier(
    mechanisms: Mapping[str, Mechanism | Law] | Iterable[tuple[str, Mechanism | Law]],
    *,
    judge: Embedding | None = None,
    prior: Prior = None,
    texts: Iterable[str] | None = None,
    model: NgramPrior | None = None,
    certify: bool = False,
    draws: int = 20_000,
    progress: Callable[[int], object] | None = None,
) -> Table:
    """Compare the utility of several mechanisms with the success of attacks on them.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism or Law, or iterable of pairs
        Names for the table, and the mechanisms. Pairs may repeat a name, for one mechanism at
        several ε. `FiniteLaw` draws a `fastdx.lab.laws.Law`.
    judge : Embedding, optional
        Measures the similarity of words and replacements. Take another embedding than those of the
        mechanisms.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written, for the attack on single words and for the bits; by default
        all words are equally likely.
    texts : iterable of str, optional
        Texts to privatise and attack. The model must not have seen them.
    model : NgramPrior, optional
        The attacker's model of the language; needed for `texts`.
    certify : bool, optional
        Whether to compute the ε that each mechanism really has on these words (`audit.certify`), if
        its law can be computed. This takes V³ steps and 8·V² bytes per mechanism.
    draws : int, optional
        Words drawn to measure the similarity if no texts are given.
    progress : callable, optional
        Called now and then with the number of words done.

    Returns
    -------
    Table
        One row per mechanism. Numbers that need a law are NaN for a mechanism without one.

        - name.
        - epsilon: the ε of the guarantee, or the one proved for the law.
        - unit: the unit of epsilon, '… distance' or 'any two words'.
        - per_distance, any_two: with `certify`, the computed ε in both units.
        - R, R_10, R_100: the probability that the word is among 1, 10, 100 guesses.
        - worst_posterior: the most certain that an output can make the attacker of a word.
        - bits: the mutual information of a word and its replacement under the prior.
        - capacity: the largest gain of one guess under any prior; NaN above 50,000 words.
        - near_loss: the mean of `near_losses` over 200 words.
        - similarity, chance: with `judge`, the mean cosine of words and their replacements, and of
          pairs put together by chance.
        - sentence, sentence_low, sentence_high: with `texts`, the share of content words that the
          strongest attacker names from whole sentences, and its interval.
        - alone: with `texts`, the share that an attacker names from each output by itself.
        - unchanged: with `texts`, the share of content words that came back unchanged.

        With `texts`, similarity and chance are those of the content words of the texts.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.lab.comparison import frontier
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [0.1], [5.0], [5.1]])
    >>> table = frontier({"plain": Tem(e, 4.0), "k=2": Tem(e, 4.0, cover=2)})
    >>> bool(table["R"][1] < table["R"][0])
    True
    """
    attacked = None if texts is None else check_texts(texts, model)
    rows = []
    pairs = mechanisms.items() if isinstance(mechanisms, Mapping) else mechanisms
    for name, given in pairs:
        mechanism = drawn(given)
        found = reidentification(mechanism, prior, (1, 10, 100), progress=progress)
        epsilon, unit = mechanism.epsilon, _unit(mechanism)
        if is_law(given):
            proved = cast("Law", given).proved
            epsilon, unit = proved.epsilon, proved.unit
        costs = _costs(mechanism, progress) if certify else {}
        row: dict[str, Any] = {
            "name": name,
            "epsilon": epsilon,
            "unit": unit,
            **costs,
            "R": found.success[1],
            "R_10": found.success[10],
            "R_100": found.success[100],
            "worst_posterior": found.worst_posterior,
            "bits": nan,
            "capacity": nan,
            "near_loss": nan,
        }
        channel = Channel.of(mechanism) if mechanism.has_law else None
        if channel is not None:
            row["bits"] = float(channel.bits(prior_of(mechanism, prior), progress=progress))
            if len(mechanism.space) <= SUMMED:
                row["capacity"] = channel.capacity
            row["near_loss"] = float(near_losses(mechanism, progress=progress).mean())
        if attacked is not None:
            read = sentence_attack(mechanism, *attacked, channel=channel, bits=False, judge=judge)
            row |= {"sentence": read.sentence.mean, "sentence_low": read.sentence.low,
                    "sentence_high": read.sentence.high, "alone": read.alone.mean,
                    "unchanged": read.unchanged, "similarity": read.similarity,
                    "chance": read.chance}  # fmt: skip
        elif judge is not None:
            row["similarity"], row["chance"] = mean_similarity(mechanism, judge, prior, draws)
        rows.append(row)
    if not rows:
        raise ParameterError("mechanisms must be at least one, got none")
    return Table.of_rows(rows)


def _unit(mechanism: Mechanism) -> str:
    """Return the unit of the ε of a mechanism's guarantee."""
    metric = mechanism.guarantee.metric
    return "any two words" if metric.startswith("discrete") else f"{metric} distance"


def _costs(mechanism: Mechanism, progress: Callable[[int], object] | None) -> dict[str, float]:
    """Return the computed ε of a mechanism in both units; NaN if its law cannot be computed."""
    if not mechanism.has_law and not computable(mechanism):
        return {"per_distance": nan, "any_two": nan}
    # Given a metric, `certify` computes both ε, even for a Tem and its own metric.
    loss = audit.certify(mechanism, metric=mechanism.space, progress=progress)
    assert isinstance(loss, audit.LargestLoss)
    return {"per_distance": loss.epsilon, "any_two": loss.local}


Make = Callable[[float], Mechanism | Law]


def largest_epsilon(
    make: Make,
    consequence: Callable[[Mechanism], float],
    most: float,
    between: tuple[float, float],
    tolerance: float,
) -> float | None:
    """Return the largest ε of an interval whose consequence is at most `most`; None if none is."""
    low, high = between

    @cache  # `narrowed` evaluates both ends again
    def excess(epsilon: float) -> float:
        return log_ratio(consequence(drawn(make(epsilon))), most)

    if excess(high) <= 0:
        return high
    if excess(low) > 0:
        return None
    return narrowed(excess, low, high, tolerance)[0]


@dataclass(frozen=True)
class CoverChoice:
    """A chosen cover and ε, with the table behind the choice."""

    mechanism: Tem
    """Tem on the chosen cover at the chosen ε."""
    k: int
    """The number of outputs per word."""
    weight: float
    """The weight by which the cover evens out frequencies; see `Cover.balanced`."""
    table: Table
    """One row per cover that keeps the bound: k, weight, epsilon, R, bits, similarity and chance.
    With `max_named` also sentence and sentence_high: the share of words that the attacker names in
    the texts, and the upper end of its interval."""


def choose_cover(
    space: Embedding | WordGraph,
    *,
    judge: Embedding,
    max_reidentified: float | None = None,
    max_bits: float | None = None,
    max_named: float | None = None,
    texts: Iterable[str] | None = None,
    model: NgramPrior | None = None,
    prior: Prior = "rank",
    ks: Sequence[int] = (10, 20, 40, 80),
    weights: Sequence[float] = (0.0, 0.05, 0.1, 0.2),
    exclude: Any = None,
    tolerance: float = 0.02,
    progress: Callable[[int], object] | None = None,
) -> CoverChoice:
    """Choose k, the balance and ε of a cover together, for a bound on what a release gives away.

    For every k and weight, a search finds the largest ε (at most 64) that keeps the bound. Among
    these covers the function chooses the one whose replacements are most similar to their words by
    the judge, minus the similarity by chance.

    Give one of three bounds: on the success of one guess at single words, on bits, or on words
    named in sentences. Prefer the second or the third: at equal success of one guess, a cover tells
    several times the bits of plain Tem.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    judge : Embedding
        Measures similarity. Take another embedding than `space`.
    max_reidentified : float, optional
        A bound on the probability that an attacker names the word from one output. The attacker
        knows the mechanism and `prior`: see `reidentification`.
    max_bits : float, optional
        A bound on the bits that a release tells about a word under the prior: see `Channel.bits`.
    max_named : float, optional
        A bound on the share of content words of `texts` that the strongest attacker names, taken at
        the upper end of its interval: see `sentence_attack`. The draws are the same at every ε.
    texts, model : optional
        For `max_named`, as for `frontier`.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written; covers are balanced by these frequencies too.
    ks, weights : sequence, optional
        The values to try. A weight of 0 makes an unbalanced cover.
    exclude : optional
        Words that are never released, as for `Cover.nearest`.
    tolerance : float, optional
        The relative accuracy of ε.
    progress : callable, optional
        Called now and then with the number of words done.

    Raises
    ------
    ParameterError
        No cover keeps the bound, or the number of bounds given is not one.
    """
    bounds = {"max_reidentified": max_reidentified, "max_bits": max_bits, "max_named": max_named}
    given = {name: most for name, most in bounds.items() if most is not None}
    if len(given) != 1:
        raise ParameterError(f"{', '.join(bounds)}: give one of them, got {len(given)}")
    ((promise, most),) = given.items()
    if not 0 < most <= (np.inf if promise == "max_bits" else 1):
        end = "" if promise == "max_bits" else ", at most 1"
        raise ParameterError(f"{promise} must be above 0{end}, got {most}")
    check_tolerance(tolerance)
    attacked = check_texts(texts, model) if promise == "max_named" else None

    def consequence(at: Mechanism) -> float:
        if promise == "max_bits":
            return Channel.of(at).bits(prior_of(at, prior))
        if attacked is not None:
            return named_in_sentences(at, *attacked).high
        return reidentification(at, prior, progress=progress).success[1]

    frequencies: Any = getattr(prior, "frequencies", prior)
    frequencies = None if isinstance(frequencies, str) else frequencies
    rows, made = [], []
    for k in ks:
        for weight in weights:
            cover = (Cover.nearest(space, k, exclude=exclude) if weight == 0 else
                     Cover.balanced(space, k, weight=weight, frequencies=frequencies,
                                    exclude=exclude))  # fmt: skip
            tem = Tem(space, 1.0, cover=cover)
            epsilon = largest_epsilon(tem.with_epsilon, consequence, most, (1e-3, 64.0), tolerance)
            if epsilon is None:
                continue
            tem = tem.with_epsilon(epsilon)
            similarity, chance = mean_similarity(tem, judge, prior)
            reached = reidentification(tem, prior).success[1]
            row = {"k": k, "weight": weight, "epsilon": epsilon, "R": reached,
                   "bits": float(Channel.of(tem).bits(prior_of(tem, prior))),
                   "similarity": similarity, "chance": chance}  # fmt: skip
            if attacked is not None:
                read = named_in_sentences(tem, *attacked)
                row |= {"sentence": read.mean, "sentence_high": read.high}
            rows.append(row)
            made.append(tem)
    if not rows:
        raise ParameterError(f"no cover keeps {promise}={most} at any ε")
    table = Table.of_rows(rows)
    best = int((table["similarity"] - table["chance"]).argmax())
    return CoverChoice(made[best], int(rows[best]["k"]), float(rows[best]["weight"]), table)
