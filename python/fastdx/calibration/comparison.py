"""Several mechanisms beside each other, and the choice of a cover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import nan
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from fastdx import audit
from fastdx._core import Cover, Embedding, WordGraph
from fastdx.attacks import BigramModel, mean_similarity, reidentification, sentence_attack
from fastdx.calibration.measures import near_losses
from fastdx.calibration.search import check_tolerance, log_ratio, narrowed
from fastdx.calibration.table import Table
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism, Tem
from fastdx.mechanisms.finite_law import drawn, is_law

if TYPE_CHECKING:
    from fastdx.laws import Law

__all__ = ["CoverChoice", "choose_cover", "frontier", "largest_named"]


def frontier(
    mechanisms: Mapping[str, Mechanism | Law] | Iterable[tuple[str, Mechanism | Law]],
    *,
    judge: Embedding | None = None,
    prior: ArrayLike | str | None = None,
    texts: Iterable[str] | None = None,
    model: BigramModel | None = None,
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
    prior : array_like of float, shape (V,), or 'rank', optional
        How often each word is written, for the attack on single words.
    texts : iterable of str, optional
        Texts to privatise and attack, which the model has not seen.
    model : BigramModel, optional
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
        law), near_loss (the mean over 200 words of `near_losses`; NaN likewise), similarity and
        chance; with `texts` attack and unchanged, shares of content words, and similarity of
        these.

    Examples
    --------
    >>> from fastdx import Embedding, Tem, calibration
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [0.1], [5.0], [5.1]])
    >>> table = calibration.frontier({"plain": Tem(e, 4.0), "k=2": Tem(e, 4.0, cover=2)})
    >>> bool(table["R"][1] < table["R"][0])
    True
    """
    if texts is not None and model is None:
        raise ParameterError("model is missing: texts are attacked by one")
    texts = None if texts is None else list(texts)
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
            "near_loss": float("nan"),
        }
        if mechanism.has_law:
            row["near_loss"] = float(near_losses(mechanism, progress=progress).mean())
        if texts is not None and model is not None:
            recovered = sentence_attack(mechanism, texts, model, judge=judge)
            row |= {"attack": recovered.attack, "unchanged": recovered.unchanged,
                    "similarity": recovered.similarity, "chance": recovered.chance}  # fmt: skip
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


def largest_named(
    mechanism: Mechanism | Callable[[float], Mechanism | Law],
    most: float,
    prior: ArrayLike | str | None,
    between: tuple[float, float],
    tolerance: float,
    *,
    draws: int = 200,
    progress: Callable[[int], object] | None = None,
) -> float | None:
    """Return the largest of some ε at which an attacker names no more words; None where at none.

    The mechanism is one whose ε can be changed, or a function of ε.
    """
    low, high = between
    make = mechanism.with_epsilon if isinstance(mechanism, Mechanism) else mechanism

    @cache  # the ends are asked for again
    def excess(epsilon: float) -> float:
        found = reidentification(drawn(make(epsilon)), prior, draws=draws, progress=progress)
        return log_ratio(found.success[1], most)

    if excess(high) <= 0:
        return high
    if excess(low) > 0:
        return None
    return narrowed(excess, low, high, tolerance)[0]


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
    """All that was looked at: k, weight, epsilon, R, similarity, chance."""


def choose_cover(
    space: Embedding | WordGraph,
    *,
    max_reidentified: float,
    judge: Embedding,
    prior: ArrayLike | str | None = "rank",
    ks: Sequence[int] = (10, 20, 40, 80),
    weights: Sequence[float] = (0.0, 0.05, 0.1, 0.2),
    exclude: Any = None,
    tolerance: float = 0.02,
    progress: Callable[[int], object] | None = None,
) -> CoverChoice:
    """Choose k, the balance and ε together, for a wanted bound on the attacker.

    For every k and weight the largest ε (at most 64) at which an attacker who knows the mechanism
    and `prior` names the word with a probability of at most `max_reidentified`; of these the one
    whose replacements are most similar to their words by the judge, less what chance gives.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words and metric.
    max_reidentified : float
        The bound, between 0 and 1: see `reidentification`.
    judge : Embedding
        Measures similarity; another embedding than `space`.
    prior : array_like of float, shape (V,), or 'rank', optional
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
        No cover keeps the bound.
    """
    if not 0 < max_reidentified <= 1:
        raise ParameterError(f"max_reidentified must be above 0, at most 1, got {max_reidentified}")
    check_tolerance(tolerance)
    frequencies = None if prior is None or isinstance(prior, str) else prior
    rows, made = [], []
    for k in ks:
        for weight in weights:
            cover = (Cover.nearest(space, k, exclude=exclude) if weight == 0 else
                     Cover.balanced(space, k, weight=weight, frequencies=frequencies,
                                    exclude=exclude))  # fmt: skip
            tem = Tem(space, 1.0, cover=cover)
            epsilon = largest_named(tem, max_reidentified, prior, (1e-3, 64.0), tolerance,
                                    progress=progress)  # fmt: skip
            if epsilon is None:
                continue
            tem = tem.with_epsilon(epsilon)
            similarity, chance = mean_similarity(tem, judge, prior)
            reached = reidentification(tem, prior).success[1]
            rows.append({"k": k, "weight": weight, "epsilon": epsilon, "R": reached,
                         "similarity": similarity, "chance": chance})  # fmt: skip
            made.append(tem)
    if not rows:
        raise ParameterError(f"no cover keeps max_reidentified={max_reidentified} at any ε")
    table = Table(**{name: np.array([row[name] for row in rows]) for name in rows[0]})
    best = int((table["similarity"] - table["chance"]).argmax())
    return CoverChoice(made[best], int(rows[best]["k"]), float(rows[best]["weight"]), table)
