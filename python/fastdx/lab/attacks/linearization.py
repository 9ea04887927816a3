"""A readable text from the words of a bag, by a public model of language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastdx._core import NgramPrior
from fastdx._shared.checks import check_type, counted
from fastdx.bags import bag_tokens
from fastdx.channel.posterior import Posterior
from fastdx.exceptions import TooLargeError

STEPS = 100_000_000
"""The most extensions of hypotheses that are looked at: about a minute."""
LEAST = 1e-300  # stands for a probability of 0, so that every bag has an order


@dataclass(frozen=True)
class Linearized:
    """The words of a bag in an order that a model finds likely. Printed, it says so first."""

    words: tuple[str, ...]
    log_probability: float
    """ln Pr[sentence], of a posterior ln Pr[sentence, release]; below -690 where that is 0."""
    exact: bool
    """Whether nothing is likelier: the search has left out no hypothesis and no candidate."""

    @property
    def text(self) -> str:
        """The words with spaces between them."""
        return " ".join(self.words)

    def __str__(self) -> str:
        return f"[the order is the model's, not the writer's]\n{self.text}"


def _pairs(bag: Posterior, most: int) -> tuple[list[tuple[str, str, float]], bool]:
    """Return (released word, written one, ln of its likelihood), and whether these are all."""
    released, words, complete = bag._given, bag._space.words, True
    pairs: list[tuple[str, str, float]] = []
    for name in dict.fromkeys(released):
        place = released.index(name)
        given = bag.likelihood(place)
        ids = np.argsort(-bag.marginals(place), kind="stable")[:most]
        likely = [(name, words[i], float(np.log(given[i]))) for i in ids if given[i] > 0]
        if bag.written[place] or not likely:  # no known word can be behind it, or it shows itself
            likely = [(name, name, 0.0)]
        else:
            complete &= len(likely) == (given > 0).sum()
        pairs += likely
    return pairs, complete


def linearize(
    bag: Mapping[str, int] | Iterable[str] | Posterior,
    prior: NgramPrior,
    *,
    beam: int = 1000,
    candidates: int = 20,
) -> Linearized:
    """Return the order of a bag's words that a model of language finds likeliest.

    The "readable text from a bag" that POST'19 leaves open; the field calls it linearization, or
    word ordering. A beam search takes hypotheses with the same words left and the same last words
    as one, and ranks them by how much likelier each word is behind those before it than by itself.

    Of a release it is post-processing: it reads the bag, the published law and a public model, so
    the guarantee of the release holds unchanged. The bag has forgotten the order as written.

    Parameters
    ----------
    bag : mapping of str to int, iterable of str, or Posterior
        The words; those that the model's space lacks are its unknown word. Or what `Channel.decode`
        found behind a private bag: words and order are then searched together, for the largest
        Pr[sentence]·Pr[each released word | its word].
    prior : NgramPrior
        A public model of the language. With an order of 1 all orders are alike.
    beam : int, optional
        The most hypotheses that are kept. If there are never more, the result is `exact`: with
        bigrams up to some eight different words at 1,000.
    candidates : int, optional
        The most known words that are considered behind each released word of a posterior.

    Raises
    ------
    InputTypeError, ParameterError, TooLargeError
        A posterior of a text, a parameter outside its domain, a bag too large for the beam.
    """
    check_type("prior", prior, NgramPrior)
    beam, candidates = counted("beam", beam, 1, STEPS), counted("candidates", candidates, 1, STEPS)
    tokens = bag_tokens(bag._given if isinstance(bag, Posterior) else bag)
    pairs, exact = [(word, word, 0.0) for word in dict.fromkeys(tokens)], True
    if isinstance(bag, Posterior):
        pairs, exact = _pairs(bag, candidates)
    counts, total, space = Counter(tokens), len(tokens), prior.space
    item = np.array([list(counts).index(word) for word, _, _ in pairs], np.intp)
    names, emitted = [name for _, name, _ in pairs], np.array([log for _, _, log in pairs])
    if (steps := total * len(names) * beam) > STEPS:
        raise TooLargeError(f"bag of {total:,} words with {len(names):,} choices takes up to "
                            f"{steps:,} steps at {beam=}, more than {STEPS:,}")  # fmt: skip
    ids = np.array([space.ids([name])[0] if name in space else -1 for name in names], np.intp)
    rows: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def logs(before: tuple[str, ...]) -> NDArray[np.float64]:
        if before not in rows:
            following = np.append(prior.next(before), prior.unknown_next(before))  # at -1
            rows[before] = np.log(np.maximum(following[ids], LEAST)) + emitted
        return rows[before]

    alone = np.full(len(counts), -np.inf)
    frequencies = np.append(prior.frequencies, prior.unknown)[ids]
    np.maximum.at(alone, item, np.log(np.maximum(frequencies, LEAST)) + emitted)
    # The words of each hypothesis, how often each word of the bag is left, and the rank.
    sentences: list[tuple[str, ...]] = [()]
    left, ranks = [tuple(counts.values())], np.zeros(1)
    for _ in range(total):
        behind = [s[max(0, len(s) - prior.order + 1) :] for s in sentences]
        extended = ranks[:, None] + np.array([logs(before) for before in behind]) - alone[item]
        possible = np.array(left)[:, item] > 0
        order = np.argsort(np.where(possible, -extended, np.inf), axis=None, kind="stable")
        kept: dict[tuple[tuple[int, ...], tuple[str, ...]], tuple[tuple[str, ...], float]] = {}
        for at in order[: int(possible.sum())].tolist():
            parent, choice = divmod(at, len(names))
            sentence = (*sentences[parent], names[choice])
            remaining = list(left[parent])
            remaining[item[choice]] -= 1
            state = tuple(remaining), sentence[max(0, len(sentence) - prior.order + 1) :]
            if state in kept:
                continue
            if len(kept) == beam:
                exact = False
                break
            kept[state] = sentence, float(extended[parent, choice])
        left = [remaining for remaining, _ in kept]
        sentences = [sentence for sentence, _ in kept.values()]
        ranks = np.array([rank for _, rank in kept.values()])
    return Linearized(sentences[0], float(ranks[0] + alone @ list(counts.values())), exact)
