"""Comparisons of mechanisms at one ε, at equal success of an attacker, or at equal bits.

`families` makes every known mechanism by its name; `compare` measures them, and mechanisms of your
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from fastdx._core import Cover, Embedding, WordGraph
from fastdx._shared.checks import between, counted, inside, positive
from fastdx._shared.rounded import up
from fastdx.calibration.choice import log_ratio, narrowed
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import check_texts, prior_of
from fastdx.channel.law import Prior, by_rank
from fastdx.exceptions import FastdxError, ParameterError
from fastdx.lab import audit, laws
from fastdx.lab.attacks import reidentification, sentence_attack
from fastdx.lab.attacks.words import similarity
from fastdx.lab.laws import Law
from fastdx.lab.laws.base import check_line, check_space, distance_matrix
from fastdx.mechanisms import MECHANISMS, FiniteLaw, Mechanism, Tem

__all__ = ["Comparison", "Family", "compare", "families", "family_names"]

Make = Callable[[float], Mechanism | Law]
"""A function from ε to a mechanism or a law."""

MORE, FEWER = "more at every ε", "less at every ε"
"""The reasons why no ε gives the success asked for: at every ε it is larger, or smaller."""
TOLERANCE = 0.005
"""The relative accuracy of the ε that `compare` searches for."""
SOLVED = 60
"""The most words of a linear programme that is solved again and again."""
DRAWS = 20_000
"""Words drawn to measure the similarity if no texts are given."""


@dataclass(frozen=True)
class Family:
    """A mechanism as a function of its ε, in which `compare` searches for an ε.

    `families` makes the families of fastdx and of publications. Make a Family yourself to compare a
    mechanism of your own with them.
    """

    name: str
    """The name of the family."""
    about: str
    """A phrase that describes the mechanism and its other parameters."""
    make: Make
    """A function from ε to a mechanism (for example a `FiniteLaw`) or a law."""
    epsilons: tuple[float, float] = (0.01, 100.0)
    """The ends of the search for ε; `make` must accept both."""


class Known(NamedTuple):
    """A family of the tables: it needs only words, ε and at most one other number."""

    prepare: Callable[[Any, float], Make]
    """Computes, from the words and the number, everything that does not depend on ε."""
    about: str
    """A phrase that describes the other parameters."""
    parameter: str = ""
    """A phrase that describes the number; empty if the family takes none."""
    default: float = 0.0
    """The default of the number."""
    epsilons: tuple[float, float] = (0.01, 1000.0)
    """The ends of a search for ε."""


def _cover(make: Callable[..., Cover], **options: float) -> Callable[[Any, float], Make]:
    return lambda space, k: partial(Tem, space, cover=make(space, _whole(k, space), **options))


def _whole(k: float, space: Any) -> int:
    """Return a number of words, at most all."""
    return counted("the number behind the name", min(k, len(space)), 1, len(space))


def _santext_plus(space: Any, share: float) -> Make:
    share = between("santext-plus's share of sensitive words", share, 0.0, 1.0)
    rare = space.words[-max(1, round(share * len(space))) :]
    return lambda epsilon: laws.santext_plus(space, epsilon, rare)


def _truncated(space: Any, _: float) -> Make:
    span = positive("the distance of the outermost words", float(np.ptp(check_line(space))))

    def make(epsilon: float) -> Law:
        if not 0 < epsilon < 0.5:
            raise ParameterError(
                f"truncated-laplace's epsilon must be above 0 and below 0.5, got {epsilon}"
            )
        bound = -span / epsilon * float(np.log1p(-2 * epsilon))
        return laws.truncated_laplace(space, epsilon, bound)

    return make


def _neighbours(space: Any, rate: float) -> Make:
    rate = positive("neighbours's rate", rate)
    return lambda epsilon: laws.with_neighbors(laws.santext(space, epsilon), rate * epsilon)


def _optimal(space: Any, gap: float) -> Make:
    if len(space) > SOLVED:
        raise ParameterError(f"laws.optimal takes minutes for more than {SOLVED} words")
    return lambda epsilon: laws.optimal(space, epsilon, gap=gap)


VARIANTS: dict[str, Known] = {
    "tem-cover": Known(_cover(Cover.nearest), "Tem", "nearest outputs that a word stands for", 40),
    "tem-balanced": Known(
        _cover(Cover.balanced, weight=0.1), "Tem",
        "outputs of like frequency that a word stands for", 40,
    ),
    "tem-rank": Known(
        lambda space, power: partial(Tem, space, language=by_rank(None, len(space)) ** power),
        "Tem", "the power of 1/(rank + 2.7), the public weight of an output", 1,
    ),
    "tem-remap": Known(
        lambda space, k: partial(Tem, space, remap=_whole(k, space)),
        "Tem", "nearest words that replace an output", 5,
    ),
}  # fmt: skip
"""Tem with other parameters, by name."""
PUBLISHED: dict[str, Known] = {
    "santext": Known(
        lambda space, _: partial(laws.santext, space), "laws.santext: all words",
    ),
    "santext-plus": Known(
        _santext_plus,
        "laws.santext_plus: the rarest words are sensitive, 1 of 5 others is replaced",
        "share of the words that are sensitive", 0.5,
    ),
    "custext": Known(
        lambda space, k: partial(laws.custext, space, k=_whole(k, space)),
        "laws.custext: sets that are a partition",
        "words of a set", 20,
    ),
    "custext-own": Known(
        lambda space, k: partial(laws.custext, space, k=_whole(k, space), partition=False),
        "laws.custext: every word its own set",
        "words of a set", 20,
    ),
    "diffractor": Known(
        # The line costs seconds on large vocabularies and is the same for every ε.
        lambda space, _: partial(laws.one_diffractor, space, orders=[laws.greedy_order(space)]),
        "laws.one_diffractor: one greedy line",
    ),
    "diffractor-tem": Known(
        lambda space, gamma: partial(laws.one_diffractor, space, method="tem", gamma=int(gamma),
                                     orders=[laws.greedy_order(space)]),
        "laws.one_diffractor: one greedy line",
        "places beyond which words are alike", 5,
    ),
    "vickrey-line": Known(
        lambda space, t: partial(laws.vickrey, space, t=t), "laws.vickrey: one dimension", "t", 0.5,
    ),
    "truncated-laplace": Known(
        _truncated, "laws.truncated_laplace: one dimension, the authors' bound",
        epsilons=(0.01, 0.499),
    ),
    "rank-based": Known(
        lambda space, _: partial(laws.rank_based, space), "laws.rank_based: all words",
    ),
    "words-blending-boxes": Known(
        lambda space, safe: partial(laws.words_blending_boxes, space,
                                    safe=min(int(safe), max(len(space) - 1, 1))),
        "laws.words_blending_boxes: 20 candidates", "words left out", 4,
    ),
    "neighbours": Known(
        _neighbours, "laws.with_neighbors: SanText, then neighbours", "rate of a rank, in ε", 0.04,
    ),
    "randomised-response": Known(
        lambda space, _: partial(laws.randomized_response, space),
        "laws.randomized_response: all words",
    ),
    "blahut-arimoto": Known(
        lambda space, rounds: partial(laws.blahut_arimoto, space, iterations=int(rounds)),
        "laws.blahut_arimoto: all words alike likely", "rounds", 30,
    ),
    "optimal": Known(
        _optimal,
        "laws.optimal: the distance as the loss, all words alike likely; at most 60 words",
        "part of the loss that it may miss the optimum by", 0.01, (0.05, 50.0),
    ),
    "syntf": Known(
        lambda space, _: partial(laws.syntf, space, ratings=-distance_matrix(space)),
        "laws.syntf: ratings: less the distance",
    ),
}  # fmt: skip
"""The published laws, by name."""


def family_names() -> tuple[str, ...]:
    """Return the names of all families, in the order of a comparison's rows."""
    return ("tem", *VARIANTS, *(name for name in MECHANISMS if name != "tem"), *PUBLISHED)


def description(name: str, number: float | None = None) -> str:
    """Return a phrase that describes a family and its number, by default the usual one."""
    if name in MECHANISMS:
        return MECHANISMS[name].__name__
    known = {**VARIANTS, **PUBLISHED}[name]
    if not known.parameter:
        return known.about
    return f"{known.about}; {known.parameter}: {known.default if number is None else number:g}"


def _number(name: str, given: str, known: Known | None) -> float:
    """Return the number after the colon of a name."""
    if known is None or not known.parameter:
        raise ParameterError(f"{name} takes no number, got {given!r}")
    try:
        return float(given)
    except ValueError:
        raise ParameterError(f"{name} takes a number, {known.parameter}, got {given!r}") from None


def _family(name: str, space: Embedding | WordGraph) -> Family:
    check_space(space)
    start, colon, given = name.partition(":")
    known = {**VARIANTS, **PUBLISHED}.get(start)
    if known is None and start not in MECHANISMS:
        raise ParameterError(
            f"mechanisms must be names of {', '.join(family_names())}; got {start!r}"
        )
    number = _number(start, given, known) if colon else None
    made: Make
    if known is None:
        kind = MECHANISMS[start]
        least = kind.smallest_epsilon(space)
        made, epsilons = partial(kind, space), (least + 0.01, least + 1000.0)
    else:
        made = known.prepare(space, known.default if number is None else number)
        epsilons = known.epsilons
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
        every family that can be made on this space.
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
    """
    every = names == "all"
    if isinstance(names, str) and not every:
        raise ParameterError(f"names must be an iterable of names or 'all', got {names!r}")
    found: dict[str, Family] = {}
    for name in family_names() if every else names:
        try:
            found[name] = _family(name, space)
        except FastdxError as e:
            if not every:
                raise ParameterError(f"{name}: {e}") from e
            if left_out is not None:
                left_out(name, str(e))
    if not found and not every:
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
    """What was measured, by name; empty if `made` is None. Numbers that need a law are NaN for a
    mechanism without one.

    - epsilon: the ε of the guarantee, or the one proved for the law.
    - unit: the unit of epsilon, '… distance' or 'any two words'.
    - per_distance, any_two: the ε that the mechanism really has on these words (`audit.certify`) in
      both units. This takes V³ steps and 8·V² bytes.
    - R: the success of one guess at a word by itself; exact: whether it is a sum over the law.
    - bits: the mutual information of a word and its replacement under the prior.
    - similarity, chance: with `judge`, the mean cosine of words and their replacements (unchanged
      words included), and of pairs put together by chance.
    - sentence, sentence_low, sentence_high: with `texts`, the share of content words that the
      strongest attacker names from whole sentences, and its interval.
    - alone: with `texts`, the share that an attacker names from each output by itself.
    - unchanged: with `texts`, the share of content words that came back unchanged.

    With `texts`, similarity and chance are those of the content words of the texts.
    """
    why: str = ""
    """The reason why `made` is None."""

    def cells(self) -> list[str]:
        """Return the texts of the row's cells, in the order of `HEADER`."""
        if self.made is None:
            why = self.why if self.why in (MORE, FEWER) else "–"
            return [self.name, why, *["–"] * (len(HEADER) - 2)]
        v = self.values
        proved = "none" if v["epsilon"] == float("inf") else f"{up(v['epsilon'], 3)}, {v['unit']}"
        sampled = "" if v["exact"] else " (draws)"
        similar = "–"
        if "similarity" in v:
            similar = f"{v['similarity']:.3f} ({v['chance']:.3f})"
        read = "–"
        if "sentence" in v:
            read = f"{v['sentence']:.1%} ({v['sentence_low']:.1%} to {v['sentence_high']:.1%})"
        bits, *computed = (
            "–" if isnan(x) else "∞" if x == float("inf") else f"{x:{form}}"
            for x, form in ((v["bits"], ".2f"), (v["per_distance"], ".3g"), (v["any_two"], ".3g"))
        )
        return [self.name, f"{self.parameter:.3g}", proved, bits, f"{v['R']:.1%}{sampled}", read,
                *computed, similar]  # fmt: skip


HEADER = ("mechanism", "its ε", "ε proved, for", "bits a word", "named", "named in sentences",
          "ε computed, per distance",
          "ε computed, any two words", "similarity (chance)")  # fmt: skip
"""The column titles for `Comparison.cells`."""


def compare(
    made: Mapping[str, Family | Mechanism | Law],
    *,
    epsilon: float | None = None,
    named: float | None = None,
    bits: float | None = None,
    texts: Iterable[str] | None = None,
    model: NgramPrior | None = None,
    judge: Embedding | None = None,
    prior: Prior = "rank",
    progress: Callable[[str, float | None], object] | None = None,
) -> Iterator[Comparison]:
    """Compare mechanisms at one ε in their own units, at equal success of one guess, or equal bits.

    At equal success of one guess a cover tells several times the bits that Tem tells. So compare at
    equal bits, or look at the share of words that an attacker names in sentences.

    Parameters
    ----------
    made : mapping of str to Family, Mechanism or Law
        The families to compare, from `families`; a mechanism or a law is measured as it is.
    epsilon : float, optional
        One ε for all families. Units differ, so this compares the numbers in papers, not
        protection.
    named : float, optional
        Instead of `epsilon`: the success of one guess, above 0 and below 1. The attacker knows the
        mechanism and `prior`. Each family gets the largest ε, within 0.5%, at which he succeeds at
        most so often.
    bits : float, optional
        Instead of `epsilon`: the bits that a release tells about a word under `prior`. Each family
        gets the largest ε, within 0.5%, at which it tells at most that. A mechanism without a law
        has no such ε.
    texts : iterable of str, optional
        Texts to privatise and attack. The model must not have seen them.
    model : NgramPrior, optional
        The attacker's model of the language; needed for `texts`.
    judge : Embedding, optional
        Measures the similarity of words and replacements. Take another embedding than those of the
        mechanisms.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written, for the attack on single words and for the bits.
    progress : callable, optional
        Called with the name of each mechanism, and the share of the work before it.

    Yields
    ------
    Comparison
        One row per mechanism. If no ε gives that success, ``made`` is None and ``why`` says why.

    Raises
    ------
    ParameterError
        For families, not exactly one of `epsilon`, `named` and `bits` is given, or it lies outside
        its domain.
    """
    asked = any(isinstance(one, Family) for one in made.values())
    if [epsilon, named, bits].count(None) != 3 - asked:
        raise ParameterError("epsilon, named and bits: give one of them, for families alone")
    if bits is not None:
        positive("bits", bits)
    if named is not None:
        inside("named", named)
    attacked = None if texts is None else check_texts(texts, model)
    most = named if named is not None else bits

    def consequence(at: Mechanism) -> float:
        if named is not None:
            return reidentification(at, prior).success[1]
        return Channel.of(at).bits(prior)

    for at_row, (name, given) in enumerate(made.items()):
        if progress is not None:
            progress(name, at_row / len(made))
        one, at = given, epsilon
        if isinstance(given, Family):
            try:
                if most is not None:
                    at = _largest_epsilon(given, consequence, most)
                if at is None or (epsilon is None and at == given.epsilons[1]):
                    yield Comparison(name, nan, None, {}, MORE if at is None else FEWER)
                    continue
                one = given.make(at)
            except FastdxError as e:
                yield Comparison(name, nan, None, {}, str(e))
                continue
        assert not isinstance(one, Family)
        values = _measured(one, prior, judge, attacked)
        yield Comparison(name, values["epsilon"] if at is None else at, one, values)


def drawn(given: Mechanism | Law) -> Mechanism:
    """Return a mechanism as it is; for a law, the uncertified FiniteLaw that draws it."""
    return FiniteLaw(law=given, certify=False) if isinstance(given, Law) else given


def _largest_epsilon(
    family: Family, consequence: Callable[[Mechanism], float], most: float
) -> float | None:
    """Return the largest ε of a family whose consequence is at most `most`; None if none is."""
    low, high = family.epsilons

    @cache  # `narrowed` evaluates both ends again
    def excess(epsilon: float) -> float:
        return log_ratio(consequence(drawn(family.make(epsilon))), most)

    if excess(high) <= 0:
        return high
    return None if excess(low) > 0 else narrowed(excess, low, high, TOLERANCE)[0]


def _measured(
    given: Mechanism | Law,
    prior: Prior,
    judge: Embedding | None,
    attacked: tuple[list[str], NgramPrior] | None,
) -> dict[str, Any]:
    """Return the values of a row."""
    mechanism = drawn(given)
    found = reidentification(mechanism, prior)
    metric = mechanism.guarantee.metric
    epsilon, unit = mechanism.epsilon, f"{metric} distance"
    if isinstance(given, Law):
        epsilon, unit = given.proved.epsilon, given.proved.unit
    elif metric.startswith("discrete"):
        unit = "any two words"
    values = {"epsilon": epsilon, "unit": unit, "per_distance": nan, "any_two": nan,
              "R": found.success[1], "exact": found.exact, "bits": nan}  # fmt: skip
    if mechanism.has_law:
        # Given a metric, `certify` computes both ε, even for a Tem and its own metric.
        loss = audit.certify(mechanism, metric=mechanism.space)
        assert isinstance(loss, audit.LargestLoss)
        values |= {"per_distance": loss.epsilon, "any_two": loss.local}
    pi = prior_of(mechanism, prior)
    channel = Channel.of(mechanism) if mechanism.has_law else None
    if channel is not None:
        values["bits"] = float(channel.bits(pi))
    if attacked is not None:
        read = sentence_attack(mechanism, *attacked, channel=channel, bits=False, judge=judge)
        values |= {"sentence": read.sentence.mean, "sentence_low": read.sentence.low,
                   "sentence_high": read.sentence.high, "alone": read.alone.mean,
                   "unchanged": read.unchanged, "similarity": read.similarity,
                   "chance": read.chance}  # fmt: skip
    elif judge is not None:
        w = np.random.default_rng(0).choice(len(pi), DRAWS, p=pi).astype(np.uint32)
        near = similarity(mechanism, judge, w, mechanism.privatize_ids(w))
        values["similarity"], values["chance"] = near
    return values
