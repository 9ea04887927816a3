"""What a law really costs: the largest log-ratio of all pairs of words and all outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx.exceptions import ParameterError

__all__ = ["Logs", "Worst", "largest_loss"]

ROUNDING = 1e-9
"""Two laws at distance 0 may differ by rounding."""
NEAR = 8
"""Nearest words of each that are looked at first: where most losses bind."""
BLOCK = 1 << 22
"""Numbers held at a time."""


class Worst(NamedTuple):
    """A loss, the words, the likelier one first, and the output that attain it."""

    loss: float
    pair: tuple[int, int]
    output: int


@dataclass(frozen=True, eq=False)
class Logs:
    """The logarithms of a law, for the losses of its pairs of words."""

    values: NDArray[np.float64]
    """ln Pr[y|w] in row w, shape (V, V); -inf where it is 0."""
    groups: NDArray[np.intp]
    """Only words of equal number, not negative, are compared; shape (V,)."""
    errors: NDArray[np.float64] | None = None
    """How far `values` may be from the truth; None where they are exact."""
    sign: float = 0.0
    """1: losses are upper bounds, -1: lower bounds; 0: the values as they are."""

    @classmethod
    def of(
        cls,
        matrix: ArrayLike,
        groups: ArrayLike | None = None,
        errors: NDArray[np.float64] | None = None,
        sign: float = 0.0,
    ) -> Logs:
        """Take a law of the shape (V, V), or refuse it."""
        law = np.asarray(matrix, float)
        if law.ndim != 2 or law.shape[0] != law.shape[1]:
            raise ParameterError(f"matrix must have the shape (V, V), got {law.shape}")
        numbers = np.zeros(len(law), np.intp) if groups is None else np.asarray(groups, np.intp)
        with np.errstate(divide="ignore"):
            return cls(np.log(law), numbers, errors, sign)

    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and the largest that the logarithms may be, as the sign has it."""
        if self.errors is None or self.sign == 0:
            return self.values, self.values
        wide = self.sign * self.errors
        return self.values - wide, self.values + wide

    def local(self) -> tuple[Worst, NDArray[np.float64]]:
        """Compute the largest loss of any two words, and of each word.

        Returns
        -------
        worst : Worst
            The largest one.
        each : numpy.ndarray of float64, shape (V,)
            What no loss of a word and another one of its group exceeds.
        """
        low, high = self._ends()
        worst, each = Worst(0.0, (0, 0), 0), np.zeros(len(low))
        for number in np.unique(self.groups[self.groups >= 0]):
            words = np.flatnonzero(self.groups == number)
            bottom, top = low[words].min(axis=0), high[words].max(axis=0)
            # An output that no word has tells nothing.
            possible = top > -np.inf
            with np.errstate(invalid="ignore"):
                spread = np.where(possible, top - bottom, 0.0)
                # -inf less -inf is no loss.
                of_word = np.fmax(top - low[words], high[words] - bottom)
            each[words] = np.where(possible, of_word, 0.0).max(axis=1)
            output = int(spread.argmax())
            if spread[output] > worst.loss:
                pair = (int(words[high[words, output].argmax()]),
                        int(words[low[words, output].argmin()]))  # fmt: skip
                worst = Worst(float(spread[output]), pair, output)
        return worst, each

    def pairs(
        self, word: int, others: NDArray[np.intp], *, exact: bool = False
    ) -> NDArray[np.float64]:
        """Compute the losses of a word and others, for every output, shape (m, V)."""
        a, b = self.values[word], self.values[others]
        with np.errstate(invalid="ignore"):
            losses = np.abs(a - b)
        if self.errors is not None and self.sign != 0 and not exact:
            losses += self.sign * (self.errors[word] + self.errors[others])
        # -inf less -inf.
        losses[np.isnan(losses)] = 0.0
        return np.asarray(losses)

    def per_distance(
        self,
        distances: Callable[[int], NDArray[np.float64]],
        progress: Callable[[int], object] | None = None,
    ) -> Worst:
        """Compute the largest loss per unit of distance.

        Parameters
        ----------
        distances : callable
            Gives the distances of a word from all, from its id.
        progress : callable, optional
            Called now and then with the number of words done.
        """
        count = len(self.values)
        _, most = self.local()
        worst = Worst(0.0, (0, 0), 0)

        def look(word: int, others: NDArray[np.intp], d: NDArray[np.float64]) -> None:
            nonlocal worst
            step = max(1, BLOCK // count)
            for first in range(0, len(others), step):
                some = others[first : first + step]
                losses = self.pairs(word, some)
                # Words at one place have one law, however well it is known.
                losses[d[some] == 0] = self.pairs(word, some[d[some] == 0], exact=True)
                largest = losses.max(axis=1)
                with np.errstate(divide="ignore", invalid="ignore"):
                    unit = largest / d[some]
                # Rounding tells no two words at one place apart; infinity bounds nothing.
                unit[(d[some] == 0) & (largest <= ROUNDING)] = 0.0
                unit[np.isinf(d[some])] = 0.0
                best = int(unit.argmax())
                if unit[best] > worst.loss:
                    output, other = int(losses[best].argmax()), int(some[best])
                    likelier = self.values[word, output] >= self.values[other, output]
                    pair = (word, other) if likelier else (other, word)
                    worst = Worst(float(unit[best]), pair, output)

        words = np.arange(count)
        for nearest_only in (True, False):
            for word in words[self.groups >= 0]:
                d = distances(word)
                with np.errstate(divide="ignore", invalid="ignore"):
                    bound = np.minimum(most, most[word]) / d
                # 0/0: no loss at all at one place.
                open_ = (bound > worst.loss) & (self.groups == self.groups[word])
                others = words[open_ & (words != word if nearest_only else words > word)]
                if nearest_only and len(others) > NEAR:
                    others = others[np.argpartition(d[others], NEAR)[:NEAR]]
                if len(others):
                    look(int(word), others, d)
                if progress is not None and not nearest_only and word % 64 == 63:
                    progress(64)
        return worst


def largest_loss(
    matrix: ArrayLike, distances: ArrayLike | None = None, groups: ArrayLike | None = None
) -> float:
    """Compute the ε that a law really costs: the supremum over all pairs of words and outputs.

    Plain numpy, for up to about two thousand words. ``audit.certify`` says which words and which
    output bind, too.

    Parameters
    ----------
    matrix : array_like of float, shape (V, V)
        Pr[y|w] in row w.
    distances : array_like of float, shape (V, V), optional
        d(w, w'); left out, the ε of local differential privacy.
    groups : array_like of int, shape (V,), optional
        Only words of equal number, not negative, are compared.

    Returns
    -------
    float
        The largest log-ratio, per unit of distance where there are distances; infinite where an
        output is possible for one of two words alone, or words at distance 0 are told apart.

    Examples
    --------
    >>> from fastdx.laws import largest_loss
    >>> round(largest_loss([[0.75, 0.25], [0.25, 0.75]]), 6)  # ln 3
    1.098612
    """
    logs = Logs.of(matrix, groups)
    if distances is None:
        return logs.local()[0].loss
    units = np.asarray(distances, float)
    if units.shape != logs.values.shape:
        raise ParameterError(
            f"distances must have the shape {logs.values.shape}, got {units.shape}"
        )
    return logs.per_distance(lambda word: units[word]).loss
