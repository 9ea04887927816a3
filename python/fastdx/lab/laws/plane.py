"""Noise and then the nearest word, in one or two dimensions: the law and a bound on its error.

The points nearest to a word form its cell, a convex polygon. A cell's probability is a sum over its
edges. Let x be the noise's rate times the distance from the written word, and θ the direction of
the noise. S(x) = (1 + x)·e^-x is the probability that the noise is longer than x. Then

    Pr[cell] = [the word lies in it] - (1/2π)·Σ over edges, counter-clockwise, of ∫ S(x) dθ.

An edge lies on a line at distance p from the word. At its place s = p·sinh v we have x = k·cosh v,
with k = rate·p, and dθ = dv / cosh v. So the integrand is S(k·cosh v) / cosh v, which is analytic
for abs(Im v) < π/2. Gauss-Legendre quadrature on short pieces computes it, with a proved bound on
the error.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastdx.exceptions import InputTypeError, ParameterError, TooLargeError
from fastdx.lab.laws.base import LOWEST, Law, Price, distance_rows
from fastdx.lab.laws.line import borders, laplace_mass
from fastdx.mechanisms import Mahalanobis, Mechanism, MultivariateLaplace

Numbers = NDArray[np.float64]

LARGEST = 2000
"""The most words; making the cells takes about V² steps."""
POINTS = 16
"""Quadrature points per piece."""
RADII = (2.0, 3.0, 4.5, 7.0, 11.0, 17.0)
"""The radii of the ellipses around a piece in which the integrand is bounded. The radius with the
smallest error bound counts."""
HALVINGS = 60
"""The most times that a piece is halved."""
STEP = 4.0
"""The most by which x changes on a piece."""
REACH = 60.0
"""The integral along an edge ends where x exceeds its least value on the edge by this."""
EPS = 2.0**-52
NEAR = 32
"""The number of nearest places of each place that are checked first when cells are made."""
BLOCK = 1 << 21
"""The number of numbers in memory at a time."""


def computable(mechanism: Mechanism) -> bool:
    """Return whether `of_noise` accepts a mechanism."""
    return (
        isinstance(mechanism, MultivariateLaplace | Mahalanobis)
        and mechanism.embedding.dim <= 2
        and len(mechanism.space) <= LARGEST
        and not mechanism.remap
    )


def of_noise(mechanism: MultivariateLaplace | Mahalanobis) -> Law:
    """Return the law of a noise mechanism in one or two dimensions, with a bound on its error.

    ``law.errors(word)`` bounds the errors of the logarithms of the row. In two dimensions it is the
    sum of the proved bound of the quadrature and the rounding of 64-bit numbers, estimated to first
    order. In one dimension it is the rounding alone. Outputs below e^-650 get that probability and
    an infinite error.

    The mechanism has one or two dimensions, at most 2,000 words and no ``remap``. The law assumes
    that the noise consists of real numbers and that the search is exact. Proved is ε per unit of
    Euclidean distance.

    Raises
    ------
    InputTypeError, ParameterError, TooLargeError
        The argument is another mechanism, has more dimensions or remaps its outputs, or has more
        words.
    """
    if not isinstance(mechanism, MultivariateLaplace | Mahalanobis):
        raise InputTypeError(
            "mechanism must be a MultivariateLaplace or a Mahalanobis, not "
            f"{type(mechanism).__name__}"
        )
    e = mechanism.embedding
    if e.dim > 2:
        raise ParameterError(
            "mechanism must be one whose law can be computed: noise in one or two dimensions, this "
            f"one has {e.dim}"
        )
    if mechanism.remap:
        raise ParameterError("mechanism must have no remap")
    if len(e) > LARGEST:
        raise TooLargeError(f"of_noise takes at most {LARGEST} words, the space has {len(e)}")
    points = np.asarray(e.vectors, np.float64)
    allowed = np.ones(len(e), bool)
    allowed[e.ids(mechanism.excluded)] = False
    # Among words at one place the search finds the smallest id.
    ids = np.flatnonzero(allowed)
    _, first = np.unique(points[ids], axis=0, return_index=True)
    ids = np.sort(ids[first])
    rate, to_round = mechanism.epsilon, np.eye(e.dim)
    if isinstance(mechanism, Mahalanobis):
        rate, to_round = mechanism.nominal, _rounding_map(points, mechanism._details["mixing"])
    if e.dim == 1:
        cells: _Line | _Plane = _Line(points[ids, 0], rate * float(to_round[0, 0]))
    else:
        cells = _Plane(points[ids], rate, to_round)

    @cache
    def of(word: int) -> tuple[Numbers, Numbers]:
        masses, errors = cells.masses(points[word])
        law, wrong = np.zeros(len(e)), np.zeros(len(e))
        lost = ~(masses > np.exp(LOWEST)) | ~(errors < masses)
        law[ids] = np.where(lost, np.exp(LOWEST), masses)
        with np.errstate(divide="ignore", invalid="ignore"):
            wrong[ids] = np.where(lost, np.inf, -np.log1p(-errors / masses))
        return law, wrong

    why = "The density changes by a factor of at most e^(ε·d); the nearest word is post-processing."
    proved = Price(mechanism.epsilon, why, distance_rows(e), e.metric)
    claimed = proved
    if isinstance(mechanism, Mahalanobis):
        mapped = points @ to_round.T
        claimed = Price(
            rate, "The density as a function of the Mahalanobis norm.",
            lambda word: np.linalg.norm(mapped - mapped[word], axis=1), "Mahalanobis",
        )  # fmt: skip
    return Law(f"{type(mechanism).__name__} by its cells", e, lambda word: of(word)[0].copy(),
               claimed, proved, errors=lambda word: of(word)[1].copy())  # fmt: skip


def _rounding_map(points: Numbers, mixing: float) -> Numbers:
    """Return the map that makes the noise round: L⁻¹ for LLᵀ = λΣ + (1-λ)I, Σ of trace n."""
    n = points.shape[1]
    centred = points - points.mean(axis=0)
    spread = centred.T @ centred
    trace = float(np.trace(spread))
    shape = spread * (n / trace) if trace > 0 else np.eye(n)
    mixed = mixing * shape + (1 - mixing) * np.eye(n)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(mixed)))


class _Line:
    """Cells in one dimension, which are intervals; their probabilities have a closed form."""

    def __init__(self, places: Numbers, rate: float) -> None:
        self.order, self.edges = borders(places)
        self.rate = rate

    def masses(self, word: Numbers) -> tuple[Numbers, Numbers]:
        """Return every cell's probability and a bound on its error."""
        low, high = self.edges[:-1] - word[0], self.edges[1:] - word[0]
        found = np.empty(len(self.order))
        found[self.order] = laplace_mass(low, high, self.rate)
        away = np.maximum(np.maximum(low, -high), 0.0)
        errors = np.empty(len(self.order))
        errors[self.order] = 16 * EPS * (1 + self.rate * away)
        return found, errors * found


class _Edges(NamedTuple):
    """The edges between cells; `left` is on the left of the direction in which s grows."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    middle: Numbers
    """The middle of the two words, where s is 0; shape (m, 2)."""
    direction: Numbers
    """A unit vector along the edge, shape (m, 2)."""
    ends: Numbers
    """The least and the largest s, shape (m, 2)."""
    wrong: Numbers
    """Bounds on the rounding errors of `ends`, shape (m, 2)."""


class _Plane:
    """Cells in two dimensions."""

    def __init__(self, sites: Numbers, rate: float, to_round: Numbers) -> None:
        self.sites, self.rate, self.to_round = sites, rate, to_round
        self.edges = _voronoi(sites)

    def masses(self, word: Numbers) -> tuple[Numbers, Numbers]:
        """Return every cell's probability and a bound on its error."""
        count, edges = len(self.sites), self.edges
        inside = np.zeros(count)
        inside[int(np.argmin(((self.sites - word) ** 2).sum(axis=1)))] = 1.0
        if not len(edges.left):
            return inside, np.zeros(count)
        # In coordinates in which the noise is round: lines, their distances, ends of the edges.
        along = edges.direction @ self.to_round.T
        stretch = np.linalg.norm(along, axis=1)
        along /= stretch[:, None]
        middle = (edges.middle - word) @ self.to_round.T
        p = middle[:, 0] * along[:, 1] - middle[:, 1] * along[:, 0]
        start = (middle * along).sum(axis=1)
        ends = start[:, None] + edges.ends * stretch[:, None]
        beyond, bounds, near = self._edge_integrals(np.abs(p), ends)
        moved = self._rounding(
            np.linalg.norm(middle, axis=1), np.abs(p), ends, near, edges.wrong * stretch[:, None]
        )

        def gathered(values: Numbers) -> tuple[Numbers, Numbers]:
            each = values / (2 * np.pi)
            left, right = (np.bincount(side, each, count) for side in (edges.left, edges.right))
            return np.asarray(left, float), np.asarray(right, float)

        left, right = gathered(beyond * np.sign(p))
        # The additions lose some digits of the sum of absolute values.
        of_left, of_right = gathered(bounds + moved + 8 * EPS * beyond)
        return inside - left + right, of_left + of_right + 8 * EPS * inside

    def _edge_integrals(self, p: Numbers, ends: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return for every edge ∫ S dθ, a bound on its error, and the least x, all ≥ 0."""
        count = len(p)
        seen = p > 1e-300
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            v = np.where(seen[:, None], np.arcsinh(ends / p[:, None]), 0.0)
        edge, low, high = _branches(np.arange(count), v)
        k = self.rate * p[edge]
        from_x = k * np.cosh(low)
        near = np.full(count, np.inf)
        np.minimum.at(near, edge, from_x)
        # The integral beyond the cut is at most S(cut) times the remaining angle.
        with np.errstate(over="ignore"):
            cut = np.arccosh(np.maximum((from_x + REACH) / k, 1.0))
        short = np.minimum(high, cut)
        rest = np.where(high > cut, _longer(from_x + REACH) * np.pi, 0.0)
        piece, *places = _pieces(edge, k, low, short)
        values, bounds = _integrals(*places)
        total = np.bincount(piece, values, count)
        wrong = np.bincount(piece, bounds, count) + np.bincount(edge, rest, count)
        return np.asarray(total, float), np.asarray(wrong, float), near

    def _rounding(
        self, size: Numbers, p: Numbers, ends: Numbers, near: Numbers, wrong: Numbers
    ) -> Numbers:
        """Estimate the error of ∫ S dθ from rounded lines and ends of edges."""
        seen = np.isfinite(near)
        x = np.where(seen, near, 0.0)
        least = np.maximum(x / self.rate, 1e-300)
        # The line is off by a few EPS of the coordinates. The angle is off by that divided by the
        # distance of the edge, and S by at most a factor of 1 + x more.
        moved = 16 * EPS * (1 + x) * (1 + size / least) * _longer(x)
        for side in (0, 1):
            finite = np.isfinite(ends[:, side])
            away = np.maximum(np.hypot(p, np.where(finite, ends[:, side], 1.0)), least)
            turned = np.where(finite, wrong[:, side] / away, 0.0)
            moved = moved + turned * _longer(self.rate * away)
        return np.where(seen, moved, 0.0)


def _longer(x: Numbers) -> Numbers:
    """Return S(x), the probability that the noise is longer than x, in units of 1/rate."""
    return np.asarray((1 + x) * np.exp(-x))


def _branches(edge: NDArray[np.intp], v: Numbers) -> tuple[NDArray[np.intp], Numbers, Numbers]:
    """Return both branches of edges as v ≥ 0, because the integrand is even in v."""
    low = np.concatenate([np.maximum(v[:, 0], 0), np.maximum(-v[:, 1], 0)])
    high = np.concatenate([np.maximum(v[:, 1], 0), np.maximum(-v[:, 0], 0)])
    kept = high > low
    return np.concatenate([edge, edge])[kept], low[kept], high[kept]


def _pieces(
    edge: NDArray[np.intp], k: Numbers, low: Numbers, high: Numbers
) -> tuple[NDArray[np.intp], Numbers, Numbers, Numbers]:
    """Halve intervals of v until neither v nor x = k·cosh v changes much on a piece.

    Where 64 bits do not resolve such a change, all that is left of S is 0.
    """
    for _ in range(HALVINGS):
        steep = k * (np.cosh(high) - np.cosh(low)) > STEP
        long = np.flatnonzero((high - low > 1) | steep)
        if not len(long):
            break
        middle = (low[long] + high[long]) / 2
        edge, k = np.concatenate([edge, edge[long]]), np.concatenate([k, k[long]])
        low, high = np.concatenate([low, middle]), np.concatenate([high, high[long]])
        high[long] = middle
    return edge, k, low, high


def _integrals(k: Numbers, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """Return ∫ S(k·cosh v)/cosh v dv over pieces, and bounds on the errors.

    If a function is bounded by M in the ellipse of radius ρ around [-1, 1], its k-th Chebyshev
    coefficient is at most 2M·ρ^-k. N points integrate the Chebyshev polynomials of degree below 2N
    exactly. For the others the error is at most 4 (2 from the integral, 2 from the sum of weights).
    """
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    half, center = (high - low) / 2, (high + low) / 2
    cosh = np.cosh(center[:, None] + half[:, None] * nodes)
    found = half * (_longer(k[:, None] * cosh) / cosh @ weights)
    bounds = []
    for radius in RADII:
        wide, tall = half * (radius + 1 / radius) / 2, half * (radius - 1 / radius) / 2
        least, cosine = np.maximum(center - wide, 0.0), np.cos(np.minimum(tall, 2.0))
        # abs(S(z)) ≤ (1 + abs(z))·e^-Re(z), abs(cosh v)² = sinh² Re v + cos² Im v.
        slope = 1 / np.sqrt(np.sinh(least) ** 2 + cosine**2) + k
        with np.errstate(over="ignore"):
            most = slope * np.exp(-k * np.cosh(least) * cosine)
        # Within the strip where the integrand is analytic.
        most = np.where(tall < 1.55, most, np.inf)
        bounds.append(8 * most * radius ** (-2.0 * POINTS) / (1 - 1 / radius))
    return found, half * np.min(bounds, axis=0)


def _voronoi(sites: Numbers) -> _Edges:
    """Return the edges between the cells of different places.

    The edge of a pair is the part of its bisector on which no third place is nearer; each third
    place cuts the bisector to a half line. So words on one circle or line are no special case.
    The places near one of the two cut most bisectors away; all places then cut the rest.
    """
    every = np.arange(len(sites))
    lefts, rights = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for left in every[:-1]:
        away = ((sites - sites[left]) ** 2).sum(axis=1)
        near = every if len(every) <= NEAR else np.argpartition(away, NEAR)[:NEAR]
        right = every[left + 1 :]
        ends, _ = _ends(sites, np.full(len(right), left), right, near)
        right = right[ends[:, 0] < ends[:, 1]]
        lefts.append(np.full(len(right), left))
        rights.append(right)
    left, right = np.concatenate(lefts), np.concatenate(rights)
    ends, wrong = np.zeros((len(left), 2)), np.zeros((len(left), 2))
    step = max(1, BLOCK // len(sites))
    for first in range(0, len(left), step):
        some = slice(first, first + step)
        ends[some], wrong[some] = _ends(sites, left[some], right[some], every)
    kept = ends[:, 0] < ends[:, 1]
    left, right = left[kept], right[kept]
    middle, direction, _ = _bisectors(sites, left, right)
    return _Edges(left, right, middle, direction, ends[kept], wrong[kept])


def _bisectors(
    sites: Numbers, left: NDArray[np.intp], right: NDArray[np.intp]
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the middle, the direction that has `left` on its left, and half the distance."""
    apart = sites[right] - sites[left]
    length = np.linalg.norm(apart, axis=1)
    normal = apart / length[:, None]
    direction = np.column_stack([-normal[:, 1], normal[:, 0]])
    return (sites[right] + sites[left]) / 2, direction, length / 2


def _ends(
    sites: Numbers, left: NDArray[np.intp], right: NDArray[np.intp], third: NDArray[np.intp]
) -> tuple[Numbers, Numbers]:
    """Return the ends of the part of each bisector where no third place is nearer, and errors."""
    middle, direction, half = _bisectors(sites, left, right)
    away = sites[third] - middle[:, None]
    along = away[:, :, 0] * direction[:, :1] + away[:, :, 1] * direction[:, 1:]
    square = away[:, :, 0] ** 2 + away[:, :, 1] ** 2
    room = square - (half**2)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = room / (2 * along)
    limit = np.where(along == 0, np.where(room < 0, -np.inf, np.inf), limit)
    # The two places of the pair do not cut their bisector.
    itself = (third == left[:, None]) | (third == right[:, None])
    upper = np.where((along >= 0) & ~itself, limit, np.inf)
    lower = np.where((along < 0) & ~itself, limit, -np.inf)
    ends = np.stack([lower.max(axis=1), upper.min(axis=1)], axis=1)
    # Rounding moves an end by a few EPS of the terms of its numerator and denominator.
    at = (np.arange(len(left))[:, None], np.stack([lower.argmax(1), upper.argmin(1)], axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        loose = (square[at] + (half**2)[:, None]) / np.abs(2 * along[at])
        loose += np.abs(ends) * np.sqrt(square[at]) / np.abs(along[at])
    return ends, np.where(np.isfinite(ends), 8 * EPS * loose, 0.0)
