"""The class `Law`: the probabilities of all outputs of every word, with claim and proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Embedding, WordGraph
from fastdx._shared.rounded import up
from fastdx.exceptions import InputTypeError, ParameterError, TooLargeError

Space: TypeAlias = Embedding | WordGraph
"""Words and their distances."""
Row: TypeAlias = Callable[[int], NDArray[np.float64]]
"""A function from the id of one word to a number for every word of the vocabulary."""

LIMIT = 8 << 30
"""The most bytes of a matrix of all pairs of words."""
LOWEST = -650.0
"""The least log-weight, relative to the largest one of a word: see `softmax`."""


@dataclass(frozen=True, eq=False)
class Price:
    """A privacy statement about a law: an ε and the pairs of words for which it holds.

    For all words w and w' of one group and all outputs y,
    Pr[y|w] ≤ exp(epsilon·d(w, w'))·Pr[y|w']. If `distances` is None, the factor is exp(epsilon).
    """

    epsilon: float
    """ε per unit of `distances`, or for any two words. Infinite if nothing is stated."""
    why: str
    """The reason, as a sentence."""
    distances: Row | None = None
    """The metric, as a function from a word's id to its distances. None if ε is for any two words
    alike."""
    metric: str = ""
    """The metric's name; empty if there is none."""
    groups: NDArray[np.intp] | None = None
    """The number of each word's group; -1 for a word that is not protected at all. None if all
    words are one group."""

    @property
    def unit(self) -> str:
        """The unit of ε: '… distance' or 'any two words', with the number of groups if any."""
        unit = f"{self.metric} distance" if self.metric else "any two words"
        if self.groups is None:
            return unit
        count, alone = len(np.unique(self.groups[self.groups >= 0])), int((self.groups < 0).sum())
        bare = f", {alone} words NOT PROTECTED" if alone else ""
        return f"{unit} within each of {count} groups{bare}"

    def __str__(self) -> str:
        """Return the statement as a sentence."""
        if np.isinf(self.epsilon):
            return f"No finite ε. {self.why}"
        per = "per unit of" if self.metric else "for"
        told = "" if self.groups is None else "; which group it is, is RELEASED"
        return f"ε = {up(self.epsilon)} {per} {self.unit}{told}. {self.why}"


@dataclass(frozen=True, eq=False)
class Law:
    """A word mechanism as its law on a finite vocabulary, with the claimed and the proved ε."""

    name: str
    """The name of the mechanism."""
    space: Space
    """Words and metric."""
    row: Row
    """A function from the id of w to Pr[y|w] for all words y, in the order of the vocabulary."""
    claimed: Price
    """The guarantee that the publication claims."""
    proved: Price
    """The guarantee that is proved."""

    def __post_init__(self) -> None:
        """Refuse what has no words and distances."""
        check_space(self.space)

    def matrix(self) -> NDArray[np.float64]:
        """Return the law of every word: float64, shape (V, V); row w has Pr[y|w], and sums to 1.

        Raises `TooLargeError` for a matrix of more than 8 GiB.
        """
        return stacked(self.row, len(self.space))


def softmax(scores: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return exp(scores), normalised over the last axis.

    Scores more than 650 below the largest are raised to that value, so no output becomes impossible
    by underflow. This makes no guarantee weaker: if the scores of two words differ by at most c,
    their largest scores do too, and so does max(score, largest - 650).
    """
    weights = np.exp(np.maximum(scores - scores.max(axis=-1, keepdims=True), LOWEST))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def distance_rows(space: Space) -> Row:
    """Return the function from a word's id to its distances."""
    check_space(space)
    words = space.words
    return lambda word: np.asarray(space.distances(words[word]), np.float64)


def nearest_words(distances: NDArray[np.float64], word: int, k: int) -> NDArray[np.intp]:
    """Return the ids of the k nearest words, the word itself first, ties by id."""
    others = distances.copy()
    others[word] = -1
    return np.argsort(others, kind="stable")[:k]


def ranked(space: Space, weights: NDArray[np.float64]) -> Row:
    """Return the rows in which the output of rank r has the probability ``weights[r]``."""
    distances = distance_rows(space)

    def row(word: int) -> NDArray[np.float64]:
        law = np.empty(len(weights))
        law[nearest_words(distances(word), word, len(weights))] = weights
        return law

    return row


def distance_matrix(space: Space) -> NDArray[np.float64]:
    """Return all distances, shape (V, V)."""
    return stacked(distance_rows(space), len(space))


def stacked(row: Row, count: int) -> NDArray[np.float64]:
    """Return the rows of all words; refuse those that would exceed `LIMIT`."""
    if 8 * count * count > LIMIT:
        raise TooLargeError(
            f"the laws of all {count} words need {8 * count * count} bytes, the limit is {LIMIT}"
        )
    return np.stack([row(word) for word in range(count)])


def check_space(space: Space) -> None:
    """Refuse an object that is neither an Embedding nor a WordGraph."""
    if not isinstance(space, Embedding | WordGraph):
        raise InputTypeError(
            f"space must be an Embedding or a WordGraph, not {type(space).__name__}"
        )


def check_line(space: Space) -> NDArray[np.float64]:
    """Return the positions of the words of an embedding in one dimension, shape (V,)."""
    if not isinstance(space, Embedding):
        raise InputTypeError(f"space must be an Embedding, not {type(space).__name__}")
    if space.dim != 1 or space.metric not in ("euclidean", "manhattan", "chebyshev"):
        raise ParameterError(
            "space must have one dimension and the metric of a line, it has "
            f"{space.dim} and {space.metric!r}"
        )
    return np.asarray(space.vectors[:, 0], np.float64)
