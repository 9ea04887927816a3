"""Several mechanisms beside each other, and the choice of a cover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import nan
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fastdx import audit
from fastdx._core import Cover, Embedding, WordGraph
from fastdx.attacks import Prior, mean_similarity, prior_of, reidentification, sentence_attack
from fastdx.calibration.measures import near_losses
from fastdx.calibration.search import check_tolerance, log_ratio, narrowed
from fastdx.calibration.table import Table
from fastdx.calibration.told import bits_of, check_texts, named_in_sentences
from fastdx.channel import Channel, NgramPrior
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism, Tem
from fastdx.mechanisms.finite_law import drawn, is_law

if TYPE_CHECKING:
    from fastdx.laws import Law

__all__ = ["CoverChoice", "choose_cover", "frontier", "largest_named", "largest_told"]

SUMMED = 50_000
"""Words up to which the capacity, a sum over all laws, is computed beside other numbers."""


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
    """Set what replacements are worth beside what an attacker recovers, for several mechanisms.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism or Law, or iterable of pairs
        By the name that the table gives them; the same name for one mechanism at several ε. A
        `fastdx.laws.Law` is drawn by `FiniteLaw`.
    judge : Embedding, optional
        Measures the similarity of words and replacements; another one than the mechanisms'.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written, for the attack on single words and for the bits; by default
        all are alike.
    texts : iterable of str, optional
        Texts to privatise and attack, which the model has not seen.
    model : NgramPrior, optional
        What the attacker knows of the language; needed for `texts`.
    certify : bool, optional
        Whether to compute what each really costs on these words (`audit.certify`), where its law
        can be computed: V²·V steps and 8·V² bytes.
    draws : int, optional
        Words drawn for the similarity, where no texts are given.
    progress : callable, optional
        Called now and then with the number of words done.

    Returns
    -------
    Table
        name, epsilon (of the guarantee, or what is proved of the law), unit (what that ε is for:
        '… distance', or 'any two words'), with `certify` per_distance and any_two (the ε that was
        computed; NaN where there is no law), R, R_10, R_100
        (probability that 1, 10, 100 guesses hold the word), worst_posterior (NaN where there is no
        law), bits and capacity (what a release tells of a word by the prior, and what one guess
        gains at most under any; NaN where there is no law, capacity also above 50,000 words),
        near_loss (the mean over 200 words of `near_losses`; NaN likewise), similarity and chance;
        with `texts` the shares of content words named in their sentences by the strongest attacker
        (sentence, with sentence_low and sentence_high) and by themselves (alone), those unchanged,
        and similarity of these.

    Examples
    --------
    >>> from fastdx import Embedding, Tem, calibration
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [0.1], [5.0], [5.1]])
    >>> table = calibration.frontier({"plain": Tem(e, 4.0), "k=2": Tem(e, 4.0, cover=2)})
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
    return Table(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _unit(mechanism: Mechanism) -> str:
    """What the ε of a guarantee is for."""
    metric = mechanism.guarantee.metric
    return "any two words" if metric.startswith("discrete") else f"{metric} distance"


def _costs(mechanism: Mechanism, progress: Callable[[int], object] | None) -> dict[str, float]:
    """What a mechanism really costs on its words, where that can be computed."""
    from fastdx.laws.plane import computable

    if not mechanism.has_law and not computable(mechanism):
        return {"per_distance": nan, "any_two": nan}
    # Against a metric that is named, even its own, both numbers are computed.
    loss = audit.certify(mechanism, metric=mechanism.space, progress=progress)
    assert isinstance(loss, audit.LargestLoss)
    return {"per_distance": loss.epsilon, "any_two": loss.local}


Make = Callable[[float], "Mechanism | Law"]


def _largest(
    make: Make,
    consequence: Callable[[Mechanism], float],
    most: float,
    between: tuple[float, float],
    tolerance: float,
) -> float | None:
    """Return the largest of some ε at which a consequence is no larger; None where at none."""
    low, high = between

    @cache  # the ends are asked for again
    def excess(epsilon: float) -> float:
        return log_ratio(consequence(drawn(make(epsilon))), most)

    if excess(high) <= 0:
        return high
    if excess(low) > 0:
        return None
    return narrowed(excess, low, high, tolerance)[0]


def largest_told(
    make: Make, most: float, prior: Prior, between: tuple[float, float], tolerance: float
) -> float | None:
    """Return the largest of some ε at which a release tells no more bits; None where at none."""
    return _largest(make, lambda m: bits_of(m, prior), most, between, tolerance)


def largest_named(
    mechanism: Mechanism | Make,
    most: float,
    prior: Prior,
    between: tuple[float, float],
    tolerance: float,
    *,
    draws: int = 200,
    progress: Callable[[int], object] | None = None,
) -> float | None:
    """Return the largest of some ε at which an attacker names no more words; None where at none.

    The mechanism is one whose ε can be changed, or a function of ε.
    """
    make = mechanism.with_epsilon if isinstance(mechanism, Mechanism) else mechanism

    def named(at: Mechanism) -> float:
        return reidentification(at, prior, draws=draws, progress=progress).success[1]

    return _largest(make, named, most, between, tolerance)


@dataclass(frozen=True)
class CoverChoice:
    """A cover, its ε and why."""

    mechanism: Tem
    """Tem on the cover, at the ε chosen."""
    k: int
    """Outputs a word."""
    weight: float
    """How much frequencies are evened out; see `Cover.balanced`."""
    table: Table
    """All that was looked at: k, weight, epsilon, R, bits, similarity, chance; with `max_named`
    sentence and sentence_high too, the share named in the texts and its interval's upper end."""


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
    """Choose k, the balance and ε together, for a wanted bound on what is given away.

    For every k and weight the largest ε (at most 64) that keeps the bound; of these the one whose
    replacements are most similar to their words by the judge, less what chance gives. The bound is
    one of three: on single words, on bits, or on words of sentences. Covers of equal success of one
    guess at single words tell several times the bits of plain Tem: prefer one of the others.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    judge : Embedding
        Measures similarity; another embedding than `space`.
    max_reidentified : float, optional
        An attacker who knows the mechanism and `prior` names the word, from one output by itself,
        with no larger probability: see `reidentification`.
    max_bits : float, optional
        A release tells no more bits of a word by the prior: see `Channel.bits`.
    max_named : float, optional
        The strongest attacker names no larger share of the content words of `texts`, the upper end
        of its interval: see `sentence_attack`. Draws are the same at every ε.
    texts : iterable of str, optional
        Texts that the model has not seen, for `max_named`.
    model : NgramPrior, optional
        What the attacker knows of the language, for `max_named`.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written; also what covers are balanced by.
    ks, weights : sequence, optional
        What to try; a weight of 0 is not balanced.
    exclude : optional
        Words that are never released, as for `Cover.nearest`.
    tolerance : float, optional
        Of ε, relative.
    progress : callable, optional
        Called now and then with the number of words done.

    Raises
    ------
    ParameterError
        No cover keeps the bound; not one bound.
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
            return bits_of(at, prior_of(at, prior))
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
            epsilon = _largest(tem.with_epsilon, consequence, most, (1e-3, 64.0), tolerance)
            if epsilon is None:
                continue
            tem = tem.with_epsilon(epsilon)
            similarity, chance = mean_similarity(tem, judge, prior)
            reached = reidentification(tem, prior).success[1]
            row = {"k": k, "weight": weight, "epsilon": epsilon, "R": reached,
                   "bits": float(bits_of(tem, prior_of(tem, prior))), "similarity": similarity,
                   "chance": chance}  # fmt: skip
            if attacked is not None:
                read = named_in_sentences(tem, *attacked)
                row |= {"sentence": read.mean, "sentence_high": read.high}
            rows.append(row)
            made.append(tem)
    if not rows:
        raise ParameterError(f"no cover keeps {promise}={most} at any ε")
    table = Table(**{name: np.array([row[name] for row in rows]) for name in rows[0]})
    best = int((table["similarity"] - table["chance"]).argmax())
    return CoverChoice(made[best], int(rows[best]["k"]), float(rows[best]["weight"]), table)
