"""The categories of common nouns in WordNet: those that a text names where no word is certain."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

_Numbers = NDArray[np.float64]

COMMONEST = 2.0**-4
"""A category of which more words than this share are written says nothing."""


@cache
def nouns() -> dict[str, tuple[float, list[str], str | None]]:
    """Return each noun's share of its sense, its hypernyms, and the singular that it is of."""
    data = (files("fastdx.channel") / "nouns.tsv.gz").read_bytes()
    found = {}
    for line in gzip.decompress(data).decode("utf-8").splitlines():
        word, share, above = line.split("\t")
        plural = above.removeprefix("=") if above.startswith("=") else None
        found[word] = float(share), above.replace("=", "").split(), plural
    return found


def pairs() -> list[tuple[str, str]]:
    """Return each noun with each of its hypernyms; a plural is below its singular."""
    return [(word, kind) for word, (_, kinds, _) in nouns().items() for kind in kinds]


@cache
def above(word: str) -> frozenset[str]:
    """Return all that a noun is, itself included."""
    _, parents, _ = nouns()[word]
    return frozenset({word}).union(*map(above, parents))


class Hierarchy:
    """Which words of a space each category holds.

    A word counts for the categories of its first sense as a noun, as much as WordNet's tagged texts
    have it in that sense: "play" hardly, "restaurant" always. So verbs and adjectives do not make
    categories of things.
    """

    def __init__(self, words: Sequence[str]) -> None:
        lines = nouns()
        # A plural is no category: its singular is.
        pairs = [(row, name) for row, word in enumerate(words) if word in lines
                 for name in sorted(above(word)) if lines[name][2] is None]  # fmt: skip
        known = {name: i for i, name in enumerate(dict.fromkeys(name for _, name in pairs))}
        self.names = list(known)
        self._rows = np.array([row for row, _ in pairs], dtype=np.int64)
        self._categories = np.array([known[name] for _, name in pairs], dtype=np.int64)
        self._shares = np.array([lines[words[row]][0] for row, _ in pairs], dtype=np.float64)
        self._plural = np.array([word in lines and lines[word][2] is not None for word in words])
        self._plurals = {of: word for word, (_, _, of) in lines.items() if of is not None}

    def masses(self, probabilities: _Numbers) -> _Numbers:
        """Return the probability of every category: shape (len(names),).

        The sum over all words below it, each times the share of its sense.
        """
        weights = self._shares * probabilities[self._rows]
        return np.bincount(self._categories, weights, len(self.names)).astype(np.float64)

    def most_specific(
        self, probabilities: _Numbers, prior: _Numbers, at_least: float
    ) -> tuple[str, float] | None:
        """Return the name and the probability of the category of most information at a place.

        Its probability is `at_least` this; its information is -log2 of how often one of its words
        is written, by the prior (Resnik 1995), and at least 4 bits: "entity" says nothing. The name
        is in the plural where its words are mostly plurals.
        """
        masses, written = self.masses(probabilities), self.masses(prior)
        able = np.flatnonzero((masses >= at_least) & (written <= COMMONEST))
        if not len(able):
            return None
        # A category and the only one below it have the same words: the lower one has more above.
        best = min(able.tolist(), key=lambda c: (written[c], -len(above(self.names[c]))))
        name, plurals = self.names[best], self.masses(probabilities * self._plural)
        if plurals[best] * 2 > masses[best]:
            name = self._plurals.get(name, name)
        return name, float(masses[best])


@lru_cache(maxsize=4)
def hierarchy_of(words: tuple[str, ...]) -> Hierarchy:
    """Return the hierarchy over the words of a space, kept for the next text."""
    return Hierarchy(words)
