"""Noise and then the nearest word, in one dimension, where the law can be computed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Embedding
from fastdx._shared.checks import between, positive
from fastdx._shared.rounded import down
from fastdx.exceptions import ParameterError
from fastdx.lab.laws.base import LOWEST, Law, Price, check_line, distance_rows

POINTS = 24
"""Quadrature points per piece; on a piece of length at most 1/ε the result is exact to rounding."""
HALVINGS = 60
"""The most times that a piece is halved."""
REACH = 60.0
"""The range of the quadrature beyond the last border, in units of 1/ε; e^-60 of the tail is left
out."""
FINEST = 1e-8
"""The largest accepted spacing of neighbouring 64-bit numbers, as a share of 1/ε."""


def borders(positions: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the words by position, shape (m,), and the borders between them, shape (m + 1,).

    Word ``order[i]`` is nearest between ``borders[i]`` and ``borders[i + 1]``. Among words at one
    position only the smallest id is kept: ties go to it.
    """
    values, order = np.unique(positions, return_index=True)
    middle = (values[1:] + values[:-1]) / 2
    return order, np.concatenate([[-np.inf], middle, [np.inf]])


def laplace_mass(
    low: NDArray[np.float64], high: NDArray[np.float64], rate: float
) -> NDArray[np.float64]:
    """Return the probability of [low, high] under the density (rate/2)·exp(-rate·|z|)."""
    # Mirrored, so that the interval is on the positive side or contains 0. This loses no digits.
    a, b = np.where(high <= 0, -high, low), np.where(high <= 0, -low, high)
    beside = np.exp(-rate * np.maximum(a, 0)) * -np.expm1(-rate * (b - np.maximum(a, 0))) / 2
    around = (-np.expm1(-rate * np.maximum(-a, 0)) - np.expm1(-rate * np.maximum(b, 0))) / 2
    return np.asarray(np.where(a >= 0, beside, around))


def _cuts(a: float, b: float, epsilon: float) -> NDArray[np.float64]:
    """Return places from a to b, at most 1/ε apart except where every density is negligible.

    No word lies between a and b, so each density falls from one end to the other. Only e^-60 of the
    piece's mass lies farther than `REACH` from both ends.
    """
    if (b - a) * epsilon > 2 * REACH:
        steps = np.arange(REACH + 1) / epsilon
        return np.concatenate([a + steps, b - steps])
    return np.linspace(a, b, max(2, int(np.ceil((b - a) * epsilon)) + 1))


def _nearest_two(places: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of the nearest and the second nearest place, shape (m, 2)."""
    return np.argsort(np.abs(z[:, None] - places), axis=1, kind="stable")[:, :2]


def truncated_laplace(space: Embedding, epsilon: float, bound: float) -> Law:
    """Return the law of Laplace noise with a bound, followed by the nearest word.

    The density is ∝ exp(-(ε/D)·|z|) on [-bound, bound], where D is the distance of the outermost
    words. This is the truncated Laplacian mechanism ("TrLaplace", Huang et al. 2024) in one
    dimension. The authors' bound is there -(D/ε)·ln(1 - 2ε), for ε < 1/2. Two words at one place
    have one output, the word of smaller id.

    Claimed: ε for any two words. Proved: nothing; `largest_loss` and ``audit.certify`` compute the
    true ε on a vocabulary. An embedding of more dimensions, or of one place, is an error.
    """
    positions = check_line(space)
    epsilon, bound = positive("epsilon", epsilon), positive("bound", bound)
    rate = epsilon / positive("the distance of the outermost words", float(np.ptp(positions)))
    order, edges = borders(positions)

    def row(word: int) -> NDArray[np.float64]:
        cut = np.clip(edges - positions[word], -bound, bound)
        law = np.zeros(len(space))
        law[order] = laplace_mass(cut[:-1], cut[1:], rate)
        return np.asarray(law / law.sum())

    claimed = Price(epsilon, "Called canonical ε-differential privacy, for embeddings of a limited "
                    "range.")  # fmt: skip
    proved = Price(np.inf, "Noise with a bound around one word reaches places that noise around "
                   "another one never does.")  # fmt: skip
    return Law("truncated Laplace", space, row, claimed, proved)


def vickrey(space: Embedding, epsilon: float, t: float = 0.5) -> Law:
    """Return the law of the Vickrey mechanism (Xu et al. 2021) in one dimension.

    Laplace noise moves the word's place to z. Let u be the word nearest to z, and v the second
    nearest. The mechanism releases u with probability
    (1 - t)·|z - v| / (t·|z - u| + (1 - t)·|z - v|), else v: with t = 0 always the nearest word,
    with t = 1 always the second nearest. The choice depends on z alone, so it is post-processing,
    and the ε of the noise holds per unit of distance, as claimed. Code that excludes the written
    word from the choice loses this guarantee: see docs/research/mechanisms.md.

    Words in more dimensions or at one place are an error, and so is an ε so large that 64-bit
    places do not resolve 1/ε.
    """
    positions = check_line(space)
    epsilon, t = positive("epsilon", epsilon), between("t", t, 0.0, 1.0)
    positive("the distance of the outermost words", float(np.ptp(positions)))
    order, _ = borders(positions)
    places = positions[order]
    # The nearest and second nearest words change midway between two adjacent words, and midway
    # between two words with one word between them.
    middles = [(places[1:] + places[:-1]) / 2, (places[2:] + places[:-2]) / 2]
    edges = np.unique(np.concatenate([*middles, places]))
    most = FINEST / float(np.spacing(np.abs(edges).max()))
    if epsilon > most:
        raise ParameterError(
            f"epsilon must be at most {down(most, 3)} for words so far apart or from 0: beyond, 64 "
            f"bits do not resolve 1/epsilon, got {epsilon:g}"
        )
    # Pieces of at most 1/ε on which both words are fixed, with the tails up to `REACH`.
    tail = np.arange(1, REACH + 1) / epsilon
    ends = np.concatenate([edges[0] - tail[::-1], edges, edges[-1] + tail])
    grid = np.unique(np.concatenate([_cuts(a, b, epsilon) for a, b in pairwise(ends)]))
    low, high = grid[:-1], grid[1:]
    for _ in range(HALVINGS):
        # The share is not smooth where its denominator is small, so no piece is longer than the
        # denominator at its ends.
        two = _nearest_two(places, (low + high) / 2)
        away = [np.abs(end[:, None] - places[two]) @ [t, 1 - t] for end in (low, high)]
        long = (high - low > np.minimum(*away)) & (0 < t < 1)
        if not long.any():
            break
        middle = ((low + high) / 2)[long]
        low, high = np.append(low, middle), np.concatenate([np.where(long, 0, high), high[long]])
        high[: len(long)][long] = middle
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    two = _nearest_two(places, (low + high) / 2)
    z = ((low + high)[:, None] + (high - low)[:, None] * nodes) / 2
    first, second = np.abs(z - places[two[:, :1]]), np.abs(z - places[two[:, 1:]])
    share = (1 - t) * second / (t * first + (1 - t) * second)

    def row(word: int) -> NDArray[np.float64]:
        # Quadrature gives the share of u on each piece; the mass of a piece is exact.
        away = np.abs(z - positions[word])
        density = np.exp(-epsilon * (away - away.min(axis=1, keepdims=True)))
        part = (density * share) @ weights / (density @ weights)
        mass = laplace_mass(low - positions[word], high - positions[word], epsilon)
        law = np.zeros(len(space))
        np.add.at(law, order[two[:, 0]], mass * part)
        np.add.at(law, order[two[:, 1]], mass * (1 - part))
        # Raised to e^-650, which makes no log-ratio larger: no output is lost to underflow.
        law[order] = np.maximum(law[order], np.exp(LOWEST))
        return np.asarray(law / law.sum())

    why = "Which of the two nearest words is released depends on the noisy point alone."
    price = Price(epsilon, why, distance_rows(space), space.metric)
    return Law("Vickrey", space, row, price, price)
