"""Laws written out in numpy: rows of probabilities, log-ratios of all pairs, bits."""

from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastdx import Cover, Embedding, Mechanism, WordGraph
from fastdx.channel import NgramPrior
from fastdx.lab.laws import Law

Numbers: TypeAlias = NDArray[np.float64]


def law_of(made: Mechanism | Law) -> Numbers:
    """A row for each word."""
    if isinstance(made, Law):
        return made.matrix()
    return np.array([made.probabilities(word) for word in made.space.words])


def distances_of(space: Embedding | WordGraph) -> Numbers:
    """Of all pairs of words."""
    return np.array([space.distances(word) for word in space.words], float)


def ratios_of(law: Any) -> Numbers:
    """The largest log-ratio of each pair of words over all outputs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        found = np.nan_to_num(np.abs(logs[:, None] - logs), nan=0.0, posinf=np.inf)
    largest: Numbers = found.max(axis=2)
    return largest


def largest_ratio(law: Any, distances: Any = None, groups: Any = None) -> float:
    """The largest log-ratio per unit of distance, or of any two words, within groups if there are.

    A negative group is compared with none.
    """
    ratios = ratios_of(law)
    d = np.ones_like(ratios) if distances is None else np.asarray(distances)
    pairs = ~np.eye(len(ratios), dtype=bool)
    if groups is not None:
        pairs &= (groups[:, None] == groups) & (groups >= 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.nan_to_num(ratios / d, nan=0.0, posinf=np.inf)
    each[d == 0] = np.where(ratios > 1e-9, np.inf, 0.0)[d == 0]
    return float(each[pairs].max(initial=0.0))


def loss_of(made: Mechanism | Law) -> float:
    """The largest log-ratio per unit of distance, over all pairs and outputs."""
    return largest_ratio(law_of(made), distances_of(made.space))


def tem_law(distances: Any, epsilon: float, gamma: float, base: Any = 1.0) -> Numbers:
    """Tem's law as the paper writes it, with ⊥ shared by the words beyond γ."""
    weights = base * np.exp(-epsilon / 2 * np.minimum(distances, gamma)) * np.isfinite(distances)
    law: Numbers = weights / weights.sum(axis=-1, keepdims=True)
    return law


def distances_to_sets(cover: Cover) -> Numbers:
    """Of all words to all outputs: to the nearest word of the output's set, ∞ without one."""
    apart, space = distances_of(cover.space), cover.space
    found = np.full_like(apart, np.inf)
    for y, word in enumerate(space.words):
        if held := cover.sets(word):
            found[:, y] = apart[:, space.ids(held)].min(axis=1)
    return found


def zipf(count: int) -> Numbers:
    """The prior "rank"."""
    weights: Numbers = 1 / (np.arange(count) + 3.7)
    weights /= weights.sum()
    return weights


def bits_of(prior: Numbers, law: Any) -> float:
    """The information that an output gives about a word."""
    joint = (prior / prior.sum())[:, None] * law
    kept = joint > 0
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float((joint[kept] * np.log2(joint[kept] / apart[kept])).sum())


def behind(prior: NgramPrior, likelihoods: Numbers) -> Numbers:
    """Sums over all texts behind a release: a row for each place, a column for each word.

    The likelihoods have the same form. Texts are of known words, and how likely that is counts.
    """
    found, words = np.zeros_like(likelihoods), prior.space.words
    for text in product(range(len(words)), repeat=len(likelihoods)):
        weight, names = 1.0, [words[i] for i in text]
        for i, word in enumerate(text):
            weight *= prior.next(names[:i])[word] * likelihoods[i, word]
            weight *= 1 - prior.unknown_next(names[:i])
        found[range(len(text)), text] += weight
    return found
