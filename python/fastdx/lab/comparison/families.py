"""Every known mechanism on one space, by name, and comparisons of them.

`compared` compares mechanisms at one ε, at equal success of an attacker, or at equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from typing import Any

from fastdx._core import Cover, Embedding, WordGraph
from fastdx._shared.checks import inside, positive
from fastdx._shared.rounded import up
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.receiver import Prior, by_rank
from fastdx.exceptions import FastdxError, ParameterError
from fastdx.lab.attacks import reidentification
from fastdx.lab.comparison.frontier import Make, frontier, largest_epsilon
from fastdx.lab.laws import Law
from fastdx.lab.laws.registry import NAMES, by_name, number_of
from fastdx.mechanisms import MECHANISMS, Mechanism, Tem

Space = Embedding | WordGraph

ALIASES = {"madlib": "laplace", "staircase": "response"}
"""Other names in use for some families."""
MORE, FEWER = "more at every ε", "less at every ε"
"""The reasons why no ε gives the success asked for: at every ε it is larger, or smaller."""
TOLERANCE = 0.005
"""The relative accuracy of the ε that `compared` searches for."""


@dataclass(frozen=True)
class Family:
    """A mechanism as a function of its ε, in which `compare` searches for an ε.

    `families` makes the families of fastdx and of publications. Make a Family yourself to compare a
    mechanism of your own with them.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdx import Embedding, FiniteLaw
    >>> from fastdx.lab.comparison import Family, compare, families
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [0.1], [5.0], [5.1]])
    >>> def truthful(epsilon):
    ...     return FiniteLaw(e, np.ones((4, 4)) + (np.exp(epsilon) - 1) * np.eye(4))
    >>> mine = Family("truthful", "the word itself e^ε times as likely as another", truthful)
    >>> made = {**families(e, ["randomised-response"]), mine.name: mine}
    >>> one, other = compare(made, named=0.7)
    >>> abs(one.parameter - other.parameter) < 0.01  # it is the same mechanism
    True
    """

    name: str
    """The name of the family."""
    about: str
    """A phrase that describes the mechanism and its other parameters."""
    make: Make
    """A function from ε to a mechanism (for example a `FiniteLaw`) or a law."""
    epsilons: tuple[float, float] = (0.01, 100.0)
    """The ends of the search for ε; `make` must accept both."""


# Variants of Tem by name: the function that makes one, the meaning of its number, the default.
VARIANTS: dict[str, tuple[Callable[[Space, int], Make], str, int]] = {
    "tem-cover": (
        lambda space, k: partial(Tem, space, cover=Cover.nearest(space, min(k, len(space)))),
        "nearest outputs that a word stands for", 40,
    ),
    "tem-balanced": (
        lambda space, k: partial(
            Tem, space, cover=Cover.balanced(space, min(k, len(space)), weight=0.1)
        ),
        "outputs of like frequency that a word stands for", 40,
    ),
    "tem-rank": (
        lambda space, power: partial(Tem, space, language=by_rank(None, len(space)) ** power),
        "the power of 1/(rank + 2.7), the public weight of an output", 1,
    ),
    "tem-remap": (
        lambda space, k: partial(Tem, space, remap=min(k, len(space))),
        "nearest words that replace an output", 5,
    ),
}  # fmt: skip


def family_names() -> tuple[str, ...]:
    """Return the names of all families, in the order of a comparison's rows.

    Examples
    --------
    >>> from fastdx.lab import laws
    >>> from fastdx.lab.comparison import family_names
    >>> from fastdx.mechanisms import MECHANISMS
    >>> {*MECHANISMS, *laws.NAMES} <= set(family_names())
    True
    """
    return ("tem", *VARIANTS, *(name for name in MECHANISMS if name != "tem"), *NAMES)


def description(name: str, number: float | None = None) -> str:
    """Return a phrase that describes a family and its number, by default the usual one."""
    if name in VARIANTS:
        _, parameter, usual = VARIANTS[name]
        return f"Tem; {parameter}: {usual if number is None else number:g}"
    if name in MECHANISMS:
        return MECHANISMS[name].__name__
    published = NAMES[name]
    about = f"laws.{published.function.__name__}: {published.about}"
    if not published.parameter:
        return about
    return f"{about}; {published.parameter}: {published.default if number is None else number:g}"


def _family(name: str, space: Space, *, asked: bool = True) -> Family:
    start, colon, given = name.partition(":")
    start, slow = ALIASES.get(start, start), False
    name, number, epsilons = start + colon + given, None, (0.01, 1000.0)
    made: Make
    if start in NAMES:
        published = NAMES[start]
        slow = published.most is not None and len(space) > published.most
        if slow and not asked:
            raise ParameterError(
                f"more than {published.most} words take it minutes; name it to have it"
            )
        made, epsilons = by_name(name, space), published.epsilons
        number = number_of(name, published.parameter, published.default)
    elif start in VARIANTS:
        prepare, parameter, default = VARIANTS[start]
        number = number_of(name, parameter, default)
        if not (number >= 1 and number == int(number)):
            raise ParameterError(f"{start} takes a whole number of at least 1, got {number:g}")
        made = prepare(space, int(number))
    elif start in MECHANISMS:
        number_of(name, "", 0)
        kind = MECHANISMS[start]
        least = kind.smallest_epsilon(space)
        made, epsilons = partial(kind, space), (least + 0.01, least + 1000.0)
    else:
        known = ", ".join(family_names())
        raise ParameterError(f"mechanisms must be names of {known}; got {start!r}")
    if not slow:
        # Raises now if the mechanism cannot be made on these words.
        made(min(epsilons[0] + 0.3, epsilons[1]))
    return Family(name, description(start, number), made, epsilons)


def families(
    space: Embedding | WordGraph,
    names: Iterable[str] | str = "all",
    *,
    left_out: Callable[[str, str], object] | None = None,
) -> dict[str, Family]:
    """Return mechanisms by name, each as a function of its ε.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words, most frequent first, and metric.
    names : iterable of str, or 'all', optional
        Names from `family_names`. Some take a number after a colon: ``'custext:100'``. 'all' takes
        every family that can be made on this space without taking minutes.
    left_out : callable, optional
        For 'all': called with the name of each family that is left out, and the reason.

    Returns
    -------
    dict of str to Family
        The families in the order of the names.

    Raises
    ------
    ParameterError
        A name is unknown, or a family that was named cannot be made on this space.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.comparison import families
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0, 0.0], [1.0, 0.0], [3.0, 1.0], [0.0, 2.0]])
    >>> made = families(e, ["tem", "custext:2", "rank-based"])
    >>> made["custext:2"].make(1.0).proved.epsilon
    1.0
    """
    found: dict[str, Family] = {}
    if isinstance(names, str):
        if names != "all":
            raise ParameterError(f"names must be an iterable of names or 'all', got {names!r}")
        for name in family_names():
            try:
                found[name] = _family(name, space, asked=False)
            except FastdxError as e:
                if left_out is not None:
                    left_out(name, str(e))
        return found
    for name in names:
        try:
            found[name] = _family(name, space)
        except FastdxError as e:
            raise ParameterError(f"{name}: {e}") from e
    if not found:
        raise ParameterError("names must be at least one, got none")
    return found


@dataclass(frozen=True)
class Comparison:
    """One row of a comparison: one mechanism beside others."""

    name: str
    """The name of the mechanism."""
    parameter: float
    """The mechanism's ε, in its own unit."""
    made: Mechanism | Law | None
    """The mechanism. None if no ε gives the success asked for, or ε lies outside its domain."""
    values: Mapping[str, Any]
    """The row of `frontier`, with the computed ε; empty if `made` is None."""
    why: str = ""
    """The reason why `made` is None."""

    def cells(self) -> list[str]:
        """Return the texts of the row's cells, in the order of `HEADER`."""
        if self.made is None:
            why = self.why if self.why in (MORE, FEWER) else "–"
            return [self.name, why, *["–"] * (len(HEADER) - 2)]
        v = self.values
        proved = "none" if v["epsilon"] == float("inf") else f"{up(v['epsilon'], 3)}, {v['unit']}"
        sampled = "" if not isnan(v["worst_posterior"]) else " (draws)"
        similar = "–"
        if "similarity" in v:
            similar = f"{v['similarity']:.3f} ({v['chance']:.3f})"
        read = "–"
        if "sentence" in v:
            read = f"{v['sentence']:.1%} ({v['sentence_low']:.1%} to {v['sentence_high']:.1%})"
        computed = [_number(v[name]) for name in ("per_distance", "any_two")]
        bits = "–" if isnan(v["bits"]) else f"{v['bits']:.2f}"
        return [self.name, f"{self.parameter:.3g}", proved, bits, f"{v['R']:.1%}{sampled}", read,
                *computed, similar]  # fmt: skip


HEADER = ("mechanism", "its ε", "ε proved, for", "bits a word", "named", "named in sentences",
          "ε computed, per distance",
          "ε computed, any two words", "similarity (chance)")  # fmt: skip
"""The column titles for `Comparison.cells`."""


def _number(x: float) -> str:
    return "–" if isnan(x) else "∞" if x == float("inf") else f"{x:.3g}"


def compare(
    made: Mapping[str, Family],
    *,
    epsilon: float | None = None,
    named: float | None = None,
    bits: float | None = None,
    texts: Iterable[str] | None = None,
    model: NgramPrior | None = None,
    judge: Embedding | None = None,
    prior: Prior = "rank",
    draws: int = 20_000,
    progress: Callable[[str, float | None], object] | None = None,
) -> Iterator[Comparison]:
    """Compare mechanisms at one ε in their own units, at equal success of one guess, or equal bits.

    At equal success of one guess a cover tells several times the bits that Tem tells. So compare at
    equal bits, or look at the share of words that an attacker names in sentences.

    Parameters
    ----------
    made : mapping of str to Family
        The families to compare, from `families`.
    epsilon : float, optional
        One ε for all. Units differ, so this compares the numbers in papers, not protection.
    named : float, optional
        Instead of `epsilon`: the success of one guess, above 0 and below 1. The attacker knows the
        mechanism and `prior`. Each mechanism gets the largest ε, within 0.5%, at which he succeeds
        at most so often.
    bits : float, optional
        Instead of `epsilon`: the bits that a release tells about a word under `prior`. Each
        mechanism gets the largest ε, within 0.5%, at which it tells at most that. A mechanism
        without a law has no such ε.
    texts, model, judge, prior, draws : optional
        As for `frontier`; by default words are written by 'rank'.
    progress : callable, optional
        Called with the name of each mechanism, and the share of the work before it.

    Yields
    ------
    Comparison
        One row per mechanism. If no ε gives that success, ``made`` is None and ``why`` says why.

    Raises
    ------
    ParameterError
        Not exactly one of `epsilon`, `named` and `bits` is given, or it lies outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.comparison import compare, families
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [0.1], [5.0], [5.1]])
    >>> made = families(e, ["tem", "randomised-response"])
    >>> [round(line.values["R"], 1) for line in compare(made, named=0.7)]
    [0.7, 0.7]
    """
    if [epsilon, named, bits].count(None) != 2:
        raise ParameterError("epsilon, named and bits: give one of them")
    if bits is not None:
        positive("bits", bits)
    attacked = None if texts is None else list(texts)
    if named is not None:
        inside("named", named)
    most = named if named is not None else bits

    def consequence(at: Mechanism) -> float:
        if named is not None:
            return reidentification(at, prior).success[1]
        return Channel.of(at).bits(prior)

    for at_row, (name, family) in enumerate(made.items()):
        if progress is not None:
            progress(name, at_row / len(made))
        at = epsilon
        try:
            if most is not None:
                at = largest_epsilon(family.make, consequence, most, family.epsilons, TOLERANCE)
            if at is None or (epsilon is None and at == family.epsilons[1]):
                yield Comparison(name, nan, None, {}, MORE if at is None else FEWER)
                continue
            one = family.make(at)
        except FastdxError as e:
            yield Comparison(name, nan, None, {}, str(e))
            continue
        table = frontier({name: one}, judge=judge, prior=prior, certify=True, draws=draws,
                         texts=attacked, model=model)  # fmt: skip
        yield Comparison(name, at, one, next(iter(table)))
