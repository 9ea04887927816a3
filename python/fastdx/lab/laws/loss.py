"""The true ε of a law: the largest log-ratio over all pairs of words and all outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx.exceptions import ParameterError

ROUNDING = 1e-9
"""The largest log-ratio that rounding can cause between two words at distance 0."""
BLOCK = 1 << 22
"""The number of log-ratios in memory at a time."""


class Worst(NamedTuple):
    """A loss with the two words (the likelier one first) and the output that attain it."""

    loss: float
    pair: tuple[int, int]
    output: int


@dataclass(frozen=True, eq=False)
class Logs:
    """The logarithms of a law, from which losses between pairs of words are computed."""

    values: NDArray[np.float64]
    """ln Pr[y|w] in row w, shape (V, V); -inf for probability 0."""
    groups: NDArray[np.intp]
    """The number of each word's group, shape (V,). Only words of one group are compared; words with
    a negative number are not compared."""

    @classmethod
    def of(cls, matrix: ArrayLike, groups: ArrayLike | None = None) -> Logs:
        """Make the logarithms of a law; refuse what is no law of V words."""
        law = np.asarray(matrix, float)
        if law.ndim != 2 or law.shape[0] != law.shape[1]:
            raise ParameterError(f"matrix must have the shape (V, V), got {law.shape}")
        if not (law >= 0).all():
            raise ParameterError("matrix must hold probabilities, at least 0 and not NaN")
        numbers = np.zeros(len(law), np.intp) if groups is None else np.asarray(groups, np.intp)
        with np.errstate(divide="ignore"):
            return cls(np.log(law), numbers)

    def local(self) -> Worst:
        """Return the largest loss of any two words of one group."""
        worst = Worst(0.0, (0, 0), 0)
        for number in np.unique(self.groups[self.groups >= 0]):
            words = np.flatnonzero(self.groups == number)
            bottom, top = self.values[words].min(axis=0), self.values[words].max(axis=0)
            # An output that is impossible for every word causes no loss.
            possible = top > -np.inf
            with np.errstate(invalid="ignore"):
                spread = np.where(possible, top - bottom, 0.0)
            output = int(spread.argmax())
            if spread[output] > worst.loss:
                column = self.values[words, output]
                pair = int(words[column.argmax()]), int(words[column.argmin()])
                worst = Worst(float(spread[output]), pair, output)
        return worst

    def per_distance(self, distances: NDArray[np.float64]) -> Worst:
        """Return the largest loss per unit of distance; of all pairs, shape (V, V).

        Goes through the pairs by distance, until no loss of any two words could be larger.
        """
        most, worst = self.local().loss, Worst(0.0, (0, 0), 0)
        alike = (self.groups[:, None] == self.groups) & (self.groups >= 0)
        # Infinite distances do not count.
        first, second = np.nonzero(np.triu(alike & np.isfinite(distances), 1))
        order = np.argsort(distances[first, second], kind="stable")
        step = max(1, BLOCK // len(self.values))
        for some in (order[at : at + step] for at in range(0, len(order), step)):
            one, other = first[some], second[some]
            d = distances[one, other]
            if d[0] > 0 and most / d[0] <= worst.loss:
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                losses = np.abs(self.values[one] - self.values[other])
                # -inf minus -inf is no loss.
                losses[np.isnan(losses)] = 0.0
                largest = losses.max(axis=1)
                # Rounding is no loss between words at distance 0.
                unit = np.where((d == 0) & (largest <= ROUNDING), 0.0, largest / d)
            best = int(unit.argmax())
            if unit[best] > worst.loss:
                pair, output = (int(one[best]), int(other[best])), int(losses[best].argmax())
                likelier = self.values[pair[0], output] >= self.values[pair[1], output]
                worst = Worst(float(unit[best]), pair if likelier else pair[::-1], output)
        return worst


def largest_loss(
    matrix: ArrayLike, distances: ArrayLike | None = None, groups: ArrayLike | None = None
) -> float:
    """Compute the true ε of a law: the supremum over all pairs of words and all outputs.

    The function uses plain numpy and suits up to about two thousand words. ``audit.certify`` also
    returns the words and the output at which ε is reached.

    Parameters
    ----------
    matrix : array_like of float, shape (V, V)
        Pr[y|w] in row w.
    distances : array_like of float, shape (V, V), optional
        d(w, w'). By default the function computes the ε of local differential privacy.
    groups : array_like of int, shape (V,), optional
        The number of each word's group. Only words of one group are compared; words with a negative
        number are not compared.

    Returns
    -------
    float
        The largest log-ratio, per unit of distance if distances are given. Infinite if an output is
        possible for only one of two words, or if words at distance 0 have different laws.

    Examples
    --------
    >>> from fastdx.lab.laws import largest_loss
    >>> round(largest_loss([[0.75, 0.25], [0.25, 0.75]]), 6)  # ln 3
    1.098612
    """
    logs = Logs.of(matrix, groups)
    if distances is None:
        return logs.local().loss
    units = np.asarray(distances, float)
    if units.shape != logs.values.shape:
        raise ParameterError(
            f"distances must have the shape {logs.values.shape}, got {units.shape}"
        )
    if not (units >= 0).all():
        raise ParameterError("distances must be at least 0 and not NaN")
    return logs.per_distance(units).loss
