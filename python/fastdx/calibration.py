"""What ε does to words, in numbers that it can be chosen by.

For a word w: N_w is the probability that it comes back unchanged; S_w the number of distinct
outputs in so many draws, as the papers have it; ``support`` the size of the smallest set of outputs
of probability at least 1 - η; K_w the size of the smallest set of inputs that explain an output
w with that probability, were all inputs equally likely (WSDM'20 section 4.1, ICDM'19 section V).
For Tem all are exact sums over its law; for the other mechanisms they are counted in draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Cover, Embedding, WordGraph, binomial_bounds, closed_form, simulate
from fastdx._core import inputs as inputs_of
from fastdx.attacks import BigramModel, mean_similarity, reidentification, sentence_attack
from fastdx.exceptions import FastdxError, InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism, Tem

__all__ = [
    "Choice",
    "CoverChoice",
    "Match",
    "Table",
    "choose_cover",
    "choose_epsilon",
    "frontier",
    "match",
    "reidentification",
    "statistics",
    "sweep",
]

SAMPLE = 200
"""Words that noise mechanisms are measured on where none are named, spread over the vocabulary."""


class Table:
    """Columns of numbers of one length: a numpy structured array with names.

    ``table["N_w"]`` is a column, ``table.array`` the whole; `to_pandas`, `to_polars` and `to_arrow`
    need these libraries.
    """

    def __init__(self, **columns: Any) -> None:
        """Take the columns as they are."""
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        kinds = [(n, object if a.dtype.kind == "U" else a.dtype) for n, a in arrays.items()]
        self.array: NDArray[Any] = np.empty(len(next(iter(arrays.values()))), dtype=kinds)
        for name, column in arrays.items():
            self.array[name] = column

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.array.dtype.names or ())

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column."""
        if column not in self.columns:
            raise ParameterError(f"column must be one of {list(self.columns)}, got {column!r}")
        found: NDArray[Any] = self.array[column]
        return found

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.array)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield rows as dicts."""
        for row in self.array:
            yield dict(zip(self.columns, row.tolist(), strict=True))

    def __repr__(self) -> str:
        """Show the size and the columns."""
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def __str__(self) -> str:
        """Show the first rows."""
        rows = [list(self.columns)]
        for row in self.array[:20]:
            rows.append([f"{x:.4g}" if isinstance(x, float) else str(x) for x in row.tolist()])
        widths = [max(len(r[i]) for r in rows) for i in range(len(self.columns))]
        lines = ["  ".join(x.rjust(w) for x, w in zip(r, widths, strict=True)) for r in rows]
        more = len(self) - 20
        return "\n".join(lines + ([f"… and {more} more"] if more > 0 else []))

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame({name: self[name] for name in self.columns})

    def to_polars(self) -> Any:
        """Return a polars.DataFrame."""
        import polars

        return polars.DataFrame({name: self[name].tolist() for name in self.columns})

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table."""
        import pyarrow

        return pyarrow.table({name: self[name].tolist() for name in self.columns})


def _ids(mechanism: Mechanism, words: Iterable[str] | None) -> NDArray[np.uint32]:
    if not isinstance(mechanism, Mechanism):
        raise InputTypeError(f"mechanism must be a Mechanism, not {type(mechanism).__name__}")
    if words is not None:
        ids = mechanism.space.ids(words)
        if not len(ids):
            raise ParameterError("words must be at least one, got none")
        return ids
    count = len(mechanism.space)
    if mechanism.has_law:
        return np.arange(count, dtype=np.uint32)
    return np.unique(np.linspace(0, count - 1, min(SAMPLE, count)).astype(np.uint32))


def _names(mechanism: Mechanism, ids: NDArray[np.uint32]) -> list[str]:
    all_words = mechanism.space.words
    return [all_words[i] for i in ids]


def statistics(
    mechanism: Mechanism,
    words: Iterable[str] | None = None,
    draws: int = 1000,
    *,
    eta: float = 0.05,
    near: int = 10,
    inputs: bool = True,
    confidence: float = 0.99,
    half_width: float | None = None,
    progress: Callable[[int], object] | None = None,
) -> Table:
    """Measure a mechanism on words.

    Parameters
    ----------
    mechanism : Mechanism
        Tem in closed form, the others by simulation.
    words : iterable of str, optional
        By default the whole vocabulary for Tem, 200 words spread over it for the others.
    draws : int, optional
        Draws a word, and the draws that ``distinct`` is about.
    eta : float, optional
        Support and K_w are sets of mass 1 - eta.
    near : int, optional
        ``near`` is the probability of an output among so many nearest words.
    inputs : bool, optional
        K_w too: this needs the laws of the whole vocabulary.
    confidence : float, optional
        Of the bounds of a simulated N_w.
    half_width : float, optional
        As many draws as make these bounds at most so far apart from their middle, for every N_w,
        in the place of `draws`.
    progress : callable, optional
        Called now and then with a growing count.

    Returns
    -------
    Table
        word, N_w, N_w_low, N_w_high (equal where exact), support, S_w (for Tem its expectation),
        K_w (simulated: of the measured words those that gave this one); for Tem also shannon,
        min_entropy and hartley (bits) and near.

    Examples
    --------
    >>> from fastdx import Tem, calibration
    >>> table = calibration.statistics(Tem(epsilon=3.0), ["coffee", "tea"], inputs=False)
    >>> table["N_w"].shape
    (2,)
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    if half_width is not None:
        draws = _draws_for(half_width, confidence)
    ids = _ids(mechanism, words)
    names = np.array(_names(mechanism, ids), dtype=object)
    if mechanism.has_law:
        count = len(mechanism.space)
        n, s, distinct, shannon, minimum, close = closed_form(
            mechanism, ids, eta, near, draws, progress
        )
        columns = {"word": names, "N_w": n, "N_w_low": n, "N_w_high": n, "support": s,
                   "S_w": distinct}  # fmt: skip
        if inputs:
            columns["K_w"] = inputs_of(mechanism, ids, eta, progress)
        hartley = np.full(len(ids), np.log2(count))
        return Table(**columns, shannon=shannon, min_entropy=minimum, hartley=hartley, near=close)
    unchanged, distinct_found, outputs, k = simulate(mechanism, ids, draws, eta, progress)
    low, high = binomial_bounds(unchanged, draws, (1 - confidence) / 2)
    return Table(word=names, N_w=unchanged / draws, N_w_low=low, N_w_high=high, support=outputs,
                 S_w=distinct_found.astype(float), K_w=k)  # fmt: skip


def _draws_for(half_width: float, confidence: float) -> int:
    """Draws whose exact bounds are narrow enough even at one half, where they are widest."""
    if not 1e-4 <= half_width < 0.5:
        raise ParameterError(f"half_width must be from 1e-4 to below 0.5, got {half_width}")
    draws = 2
    while True:
        low, high = binomial_bounds([draws // 2], draws, (1 - confidence) / 2)
        if high[0] - low[0] <= 2 * half_width:
            return draws
        # The width falls as the root of the draws.
        wanted = draws * ((high[0] - low[0]) / (2 * half_width)) ** 2
        draws = max(draws + 2, int(0.98 * wanted) // 2 * 2)


def sweep(
    mechanism: Mechanism,
    epsilons: Sequence[float],
    words: Iterable[str] | None = None,
    draws: int = 1000,
    *,
    eta: float = 0.05,
    progress: Callable[[int], object] | None = None,
) -> Table:
    """Measure a mechanism at several ε.

    Returns
    -------
    Table
        epsilon, and mean and worst (largest or smallest) of N_w, support and S_w over the words.
    """
    names = _names(mechanism, _ids(mechanism, words))
    rows = []
    for epsilon in epsilons:
        table = statistics(mechanism.with_epsilon(epsilon), names, draws, eta=eta, inputs=False,
                           progress=progress)  # fmt: skip
        rows.append(_summary(epsilon, table))
    if not rows:
        raise ParameterError("epsilons must be at least one, got none")
    return Table(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _summary(epsilon: float, table: Table) -> dict[str, float]:
    return {
        "epsilon": float(epsilon),
        "mean_N_w": float(table["N_w"].mean()),
        "worst_N_w": float(table["N_w"].max()),
        "mean_support": float(table["support"].mean()),
        "worst_support": float(table["support"].min()),
        "mean_S_w": float(table["S_w"].mean()),
        "worst_S_w": float(table["S_w"].min()),
    }


@dataclass(frozen=True)
class Choice:
    """An ε and why. Printed, it is a sentence."""

    epsilon: float
    """The largest ε that keeps the promise (for a certified Tem its nominal one)."""
    word: str
    """The word that binds."""
    reason: str
    """'unchanged', 'outputs', 'reidentified' or 'posterior': which promise it would break at a
    larger ε."""
    curve: Table
    """What was looked at: epsilon, and mean and worst of N_w, support, S_w."""
    mechanism: Mechanism
    """The mechanism at that ε."""
    promise: str
    """The promise, as a sentence."""

    def __str__(self) -> str:
        """Return the choice as a sentence."""
        return (
            f"ε = {self.epsilon:.4g} is the largest at which {self.promise}; {self.word!r} binds "
            f"({self.reason})."
        )


def choose_epsilon(
    mechanism: Mechanism,
    *,
    max_unchanged: float = 0.5,
    min_outputs: int = 300,
    max_reidentified: float | None = None,
    max_posterior: float | None = None,
    prior: ArrayLike | str | None = None,
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
    prior : array_like of float, shape (V,), or 'rank', optional
        How often each word is written, as for `reidentification`.
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
    _check_promises(mechanism, max_unchanged, attacked)
    _check_tolerance(tolerance)
    share = 1.0 if quantile == "worst" else quantile
    if isinstance(share, str) or not 0 < share <= 1:
        raise ParameterError(f"quantile must be 'worst' or between 0 and 1, got {quantile!r}")
    names = _names(mechanism, _ids(mechanism, words))
    curve: list[dict[str, float]] = []

    @cache  # the ends of the bracket are asked for again
    def look(epsilon: float) -> tuple[bool, str, str] | None:
        try:
            at = mechanism.with_epsilon(epsilon)
        except FastdxError:
            return None  # below the smallest ε this mechanism has
        table = statistics(at, names, draws, inputs=False, progress=progress)
        curve.append(_summary(epsilon, table))
        # How near to breaking each promise: above 1 it is broken.
        unchanged = table["N_w"] / max_unchanged
        outputs = min_outputs / np.maximum(table["S_w"], 1e-9)
        strain = np.maximum(unchanged, outputs)
        order = np.argsort(strain, kind="stable")
        at_quantile = order[max(int(np.ceil(share * len(order))) - 1, 0)]
        reason = "unchanged" if unchanged[at_quantile] >= outputs[at_quantile] else "outputs"
        strains = [(float(strain[at_quantile]), names[at_quantile], reason)]
        if max_reidentified is not None or max_posterior is not None:
            found = reidentification(at, prior, progress=progress)
            surest = found.word or ""
            if max_reidentified is not None:
                strains.append((found.success[1] / max_reidentified, surest, "reidentified"))
            if max_posterior is not None:
                strains.append((found.worst_posterior / max_posterior, surest, "posterior"))
        most, word, why = max(strains)
        return most <= 1, word, why

    low, high = _bracket(look, mechanism.epsilon)
    binding = look(high)
    while high / low > 1 + tolerance:
        middle = (low * high) ** 0.5
        found = look(middle)
        if found is not None and found[0]:
            low = middle
        else:
            high = middle
            binding = found or binding
    if binding is None:
        raise ParameterError("mechanism has no ε in the range looked at")
    curve.sort(key=lambda row: row["epsilon"])
    whom = "every word" if share == 1 else f"the share {share:g} of words"
    promise = (
        f"{whom} comes back unchanged with a probability of at most {max_unchanged:g} and has at "
        f"least {min_outputs} distinct outputs in {draws} draws ({len(names)} words measured)"
    )
    if max_reidentified is not None:
        promise += (
            f", an attacker names the word with a probability of at most {max_reidentified:g}"
        )
    if max_posterior is not None:
        promise += f", no output makes an attacker surer of a word than {max_posterior:g}"
    table = Table(**{name: np.array([row[name] for row in curve]) for name in curve[0]})
    return Choice(low, binding[1], binding[2], table, mechanism.with_epsilon(low), promise)


def _check_promises(
    mechanism: Mechanism, max_unchanged: float, attacked: Mapping[str, float | None]
) -> None:
    if not 0 < max_unchanged <= 1:
        raise ParameterError(f"max_unchanged must be above 0, at most 1, got {max_unchanged}")
    for parameter, most in attacked.items():
        if most is not None and not (0 < most <= 1 and mechanism.has_law):
            what = "above 0, at most 1" if mechanism.has_law else "left out where there is no law"
            raise ParameterError(f"{parameter} must be {what}, got {most}")


def _check_tolerance(tolerance: float) -> None:
    if not 1e-9 <= tolerance < 1:
        raise ParameterError(f"tolerance must be from 1e-9 to below 1, got {tolerance}")


def _bracket(
    look: Callable[[float], tuple[bool, str, str] | None], start: float
) -> tuple[float, float]:
    """Two ε, the first keeping the promise and the second not, a factor of 2 apart."""
    epsilon, found = start, look(start)
    for _ in range(40):
        if found is not None and found[0]:
            if (further := look(2 * epsilon)) is not None and not further[0]:
                return epsilon, 2 * epsilon
            epsilon, found = 2 * epsilon, further
        else:
            if found is None:
                raise ParameterError(
                    f"no ε keeps the promise: the smallest this mechanism has is above {epsilon:g}"
                )
            before = look(epsilon / 2)
            if before is not None and before[0]:
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
    _check_tolerance(tolerance)
    if on not in _CONSEQUENCES:
        raise ParameterError(f"on must be one of {sorted(_CONSEQUENCES)}, got {on!r}")
    if words is None:
        space, other = mechanism_a.space, mechanism_b.space
        spread = np.unique(np.linspace(0, len(space) - 1, SAMPLE).astype(int))
        words = [space.words[i] for i in spread if space.words[i] in other]
    words = list(words)
    measure = _CONSEQUENCES[on]

    def of(mechanism: Mechanism) -> float:
        return measure(statistics(mechanism, words, draws, inputs=False))

    target = of(mechanism_a)
    values: dict[float, float] = {}

    def look(epsilon: float) -> tuple[bool, str, str] | None:
        try:
            values[epsilon] = of(mechanism_b.with_epsilon(epsilon))
        except FastdxError:
            return None
        return values[epsilon] <= target, "", ""

    low, high = _bracket(look, mechanism_b.epsilon)
    while high / low > 1 + tolerance:
        middle = (low * high) ** 0.5
        found = look(middle)
        low, high = (middle, high) if found and found[0] else (low, middle)
    return Match(low, mechanism_b.with_epsilon(low), abs(target), abs(values[low]))


def frontier(
    mechanisms: Mapping[str, Mechanism],
    *,
    judge: Embedding | None = None,
    prior: ArrayLike | str | None = None,
    texts: Iterable[str] | None = None,
    model: BigramModel | None = None,
    progress: Callable[[int], object] | None = None,
) -> Table:
    """Set what replacements are worth beside what an attacker recovers, for several mechanisms.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        By the name that the table gives them.
    judge : Embedding, optional
        Measures the similarity of words and replacements; another one than the mechanisms'.
    prior : array_like of float, shape (V,), or 'rank', optional
        How often each word is written, for the attack on single words.
    texts : iterable of str, optional
        Texts to privatise and attack, which the model has not seen.
    model : BigramModel, optional
        What the attacker knows of the language; needed for `texts`.
    progress : callable, optional
        Called now and then with the number of words done.

    Returns
    -------
    Table
        name, epsilon (of the guarantee: per unit of distance, or for any two words), R, R_10, R_100
        (probability that 1, 10, 100 guesses hold the word), worst_posterior (NaN where there is no
        law), similarity and chance; with `texts` attack and unchanged, shares of content words, and
        similarity of these.

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
    for name, mechanism in mechanisms.items():
        found = reidentification(mechanism, prior, (1, 10, 100), progress=progress)
        row: dict[str, Any] = {
            "name": name,
            "epsilon": mechanism.epsilon,
            "R": found.success[1],
            "R_10": found.success[10],
            "R_100": found.success[100],
            "worst_posterior": found.worst_posterior,
        }
        if texts is not None and model is not None:
            recovered = sentence_attack(mechanism, texts, model, judge=judge)
            row |= {"attack": recovered.attack, "unchanged": recovered.unchanged,
                    "similarity": recovered.similarity, "chance": recovered.chance}  # fmt: skip
        elif judge is not None:
            row["similarity"], row["chance"] = mean_similarity(mechanism, judge, prior)
        rows.append(row)
    if not rows:
        raise ParameterError("mechanisms must be at least one, got none")
    return Table(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def largest_named(
    mechanism: Mechanism,
    most: float,
    prior: ArrayLike | str | None,
    between: tuple[float, float],
    tolerance: float,
    *,
    draws: int = 200,
    progress: Callable[[int], object] | None = None,
) -> float | None:
    """Return the largest of some ε at which an attacker names no more words; None where at none."""
    low, high = between

    def keeps(epsilon: float) -> bool:
        at = mechanism.with_epsilon(epsilon)
        return reidentification(at, prior, draws=draws, progress=progress).success[1] <= most

    if keeps(high):
        return high
    if not keeps(low):
        return None
    while high / low > 1 + tolerance:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


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
    _check_tolerance(tolerance)
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
