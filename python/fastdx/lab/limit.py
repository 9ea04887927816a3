"""The least that any mechanism must tell for a use: the rate-distortion function.

Blahut's and Arimoto's algorithm (R. Blahut, IEEE Trans. Inf. Theory 18(4), 1972; S. Arimoto, ibid.
18(1), 1972) finds, at each slope s, a channel of least I + s·D. Every point has two bounds:

- the channel itself, whose bits and distortion are computed as they are: a mechanism can have them,
  whatever its ε is;
- numbers λ_w of the words with Σ_w π_w·λ_w·e^(-s·d(w,z)) ≤ 1 for every answer z: then no mechanism
  has I + s·D below Σ_w π_w·ln λ_w (Csiszár, Studia Sci. Math. Hungar. 9, 1974).

Distortions are squared errors of vectors, and the answers all of R^n: the same problem as the
likeliest mixture of Gaussians, solved as that is, by EM over weights and centres from one centre a
word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._shared.checks import at_least, positive
from fastdx.channel.law import by_rank
from fastdx.exceptions import ParameterError

_Numbers = NDArray[np.float64]
_Floats = NDArray[np.float32]

ROWS = 512
"""Words handled at once: their kernels with 20,000 answers take 40 MB."""
EXPONENT = 1.5
"""The exponent of the step in an answer's weight; 1 is the published algorithm, and slower."""
LEAST_WEIGHT = 1e-9
"""The weight below which a channel drops an answer. The lower bound still counts it."""
CLIMBED_ANSWERS = 300
"""The number of answers from which a search climbs to maxima of the constraint in R^n."""


def entropy(probabilities: _Numbers) -> float:
    """Return the entropy of a distribution, in bits."""
    kept = probabilities[probabilities > 0]
    return float(-(kept * np.log2(kept)).sum())


@dataclass(frozen=True)
class RateDistortion:
    """Points of a rate-distortion function, each between two bounds.

    Made by `vector_rate_distortion`.
    """

    slopes: _Numbers
    """-dR/dD at each point, in bits per unit of distortion, descending: shape (n,)."""
    bits: _Numbers
    """The bits that the channel found at each point tells, shape (n,)."""
    distortion: _Numbers
    """The expected distortion of that channel's best receiver, shape (n,)."""
    lower: _Numbers
    """A lower bound on bits + slope·distortion of any mechanism, shape (n,)."""
    most: float
    """The distortion without any output."""
    entropy: float
    """The bits of a word, which are enough for no distortion."""

    @property
    def gap(self) -> _Numbers:
        """By how many bits each point may be above the truth at its slope, shape (n,)."""
        return self.bits + self.slopes * self.distortion - self.lower

    def attained(self, distortion: ArrayLike) -> Any:
        """Return bits that are enough for an expected distortion; infinite where none are.

        The lower hull of the points: two channels in turn have all that lies between them.
        """
        x = np.concatenate([[self.most, 0.0], self.distortion])
        y = np.concatenate([[0.0, self.entropy], self.bits])
        hull: list[tuple[float, float]] = []
        for point in sorted(zip(x.tolist(), y.tolist(), strict=True)):
            while len(hull) > 1 and _above(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        xs, ys = (np.array(part) for part in zip(*hull, strict=True))
        d = np.asarray(distortion, dtype=np.float64)
        return np.interp(d, xs, np.minimum.accumulate(ys), left=np.inf)

    def least(self, distortion: ArrayLike) -> Any:
        """Return a lower bound on the bits of any mechanism with this expected distortion.

        It is proved for answers that are words; for other answers it holds if climbing from the
        words finds all maxima of the constraint.
        """
        d = np.asarray(distortion, dtype=np.float64)
        lines = self.lower - self.slopes * d[..., None]
        return np.maximum(lines.max(axis=-1), 0.0)


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b is no lower than the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


class _Pass(NamedTuple):
    """The results of one pass over the words, in nats."""

    answers: _Floats
    """The answers in use."""
    weights: _Numbers
    """Their weights."""
    ratios: _Numbers
    """c_z = Σ_w π_w·λ_w·e^(-s·d(w,z)) of each."""
    logs: _Numbers
    """ln λ of every word."""
    bits: float
    distortion: float
    moved: _Floats
    """The answers, each put where it is best."""


class _Source:
    """Words by their vectors and frequencies; the answers are all of R^n."""

    def __init__(self, vectors: _Floats, prior: _Numbers) -> None:
        self.prior = prior
        # About their mean: kernels are made of squares, which lose digits far from 0.
        self.vectors = (vectors - prior @ vectors.astype(np.float64)).astype(np.float32)
        self.variance = float(prior @ (self.vectors.astype(np.float64) ** 2).sum(axis=1))

    def start(self) -> tuple[_Floats, _Numbers]:
        """An answer for every word."""
        used = self.prior > 0
        return self.vectors[used], self.prior[used]

    def sweep(self, z: _Floats, q: _Numbers, slope: float) -> _Pass:
        """Make the channel of these answers and weights."""
        sums, logs = np.zeros((len(q), self.vectors.shape[1] + 1)), np.empty(len(self.prior))
        light = q.astype(np.float32)
        for part, kernel in _kernels(self.vectors, z, slope):
            high = kernel.max(axis=1)
            np.exp(np.subtract(kernel, high[:, None], out=kernel), out=kernel)
            of_words = kernel @ light
            share = (self.prior[part] / of_words).astype(np.float32)[:, None]
            sums += kernel.T @ np.hstack([self.vectors[part] * share, share])
            logs[part] = -high - np.log(of_words)
        ratios, moments = sums[:, -1], sums[:, :-1]
        outputs = q * ratios
        fixed = (self.variance - 2 * float(q @ (z * moments).sum(axis=1))
                 + float(outputs @ (z.astype(np.float64) ** 2).sum(axis=1)))  # fmt: skip
        centres = moments / np.maximum(ratios, 1e-300)[:, None]
        best = self.variance - float(outputs @ (centres**2).sum(axis=1))
        # I of the channel with these weights, under the outputs' own probabilities.
        used = outputs > 0
        told = outputs[used] @ np.log(ratios[used])
        nats = max(float(self.prior @ logs - slope * fixed - told), 0.0)
        return _Pass(z, q, ratios, logs, nats, max(best, 0.0), centres.astype(np.float32))

    def largest(self, slope: float, found: _Pass, climb: bool) -> float:
        """The largest value of the constraint: at the words, and at maxima that they lead to."""
        every, above = self._constraint(self.vectors, slope, found.logs)
        most = max(float(every.max()), float(found.ratios.max()))
        if climb:
            points = above[np.argsort(-every)[:CLIMBED_ANSWERS]]
            for _ in range(10):
                values, points = self._constraint(points, slope, found.logs)
                most = max(most, float(values.max()))
        return most

    def _constraint(
        self, points: _Floats, slope: float, logs: _Numbers
    ) -> tuple[_Numbers, _Floats]:
        """The constraint at points, and where it is larger still (a step of mean shift)."""
        found, moved = np.empty(len(points)), np.empty_like(points)
        with np.errstate(divide="ignore"):
            own = (np.log(self.prior) + logs).astype(np.float32)
        for part, kernel in _kernels(points, self.vectors, slope):
            np.exp(np.minimum(np.add(kernel, own, out=kernel), 80.0, out=kernel), out=kernel)
            found[part] = kernel.sum(axis=1)
            moved[part] = kernel @ self.vectors / np.maximum(found[part], 1e-30)[:, None]
        return found, moved


def _kernels(a: _Floats, b: _Floats, slope: float) -> Iterator[tuple[slice, _Floats]]:
    """Yield -slope·(squared distances) of rows of a, block by block, and all rows of b."""
    of_a, of_b = (-slope * (x.astype(np.float64) ** 2).sum(axis=1) for x in (a, b))
    right = np.ascontiguousarray(np.vstack([b.T, np.ones(len(b)), of_b]).astype(np.float32))
    left = np.column_stack([2 * slope * a, of_a, np.ones(len(a))]).astype(np.float32)
    for first in range(0, len(a), ROWS):
        part = slice(first, first + ROWS)
        yield part, left[part] @ right


def _solve(
    source: _Source, start: tuple[_Floats, _Numbers], slope: float, tolerance: float, rounds: int
) -> tuple[_Pass, float]:
    """Iterate at a slope until the gap is small; return the last pass and the lower bound."""
    found = source.sweep(*start, slope)
    for done in range(rounds):
        inner = float(np.log(max(found.ratios.max(), 1.0)))
        last = done == rounds - 1
        # The bound over all answers takes a pass of its own: only where it may end the search.
        if inner <= tolerance or last:
            most = source.largest(slope, found, climb=True)
            if np.log(most) <= tolerance or last:
                break
        weights = found.weights * found.ratios**EXPONENT
        weights /= weights.sum()
        kept = weights > LEAST_WEIGHT
        found = source.sweep(found.moved[kept], weights[kept] / weights[kept].sum(), slope)
    return found, float(source.prior @ found.logs - np.log(most))


def _range(source: _Source) -> tuple[float, float]:
    """Slopes between which the function falls from nearly all bits to none."""
    high = 1 / source.variance
    for _ in range(40):
        found = source.sweep(*source.start(), high)
        if found.distortion <= 0.01 * source.variance or (
            found.bits >= 0.95 * entropy(source.prior) * np.log(2)
        ):
            break
        high *= 2
    single = np.zeros((1, source.vectors.shape[1]), np.float32), np.ones(1)
    low = high
    for _ in range(60):
        low /= 1.4
        if source.largest(low, source.sweep(*single, low), climb=False) <= 1 + 1e-5:
            break
    return high, low


def vector_rate_distortion(
    vectors: ArrayLike,
    prior: ArrayLike | None = None,
    *,
    slopes: SupportsIndex | ArrayLike = 12,
    tolerance: float = 0.02,
    rounds: SupportsIndex = 60,
) -> RateDistortion:
    """Return the least bits that a mechanism must tell for each mean squared error of vectors.

    The bound holds for all outputs and all receivers, whose answers may be any points: see
    `RateDistortion.least`. 20,000 words of 50 dimensions take some minutes of a core, and 0.3 GB.

    Parameters
    ----------
    vectors : array_like of float, shape (V, n)
        A vector of every word; they must not be all alike.
    prior : array_like of float, shape (V,), optional
        How often each word is written; by default 1/(rank + 2.7).
    slopes : int or array_like of float, optional
        The number of points, or -dR/dD at each, in bits per unit of distortion.
    tolerance : float, optional
        The accuracy of each point, in bits.
    rounds : int, optional
        The most passes at a slope; `RateDistortion.gap` says how exact a point then is.

    Raises
    ------
    ParameterError
        A parameter outside its domain, or vectors that are all alike.
    """
    try:
        given = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        raise ParameterError("vectors must be numbers") from None
    if given.ndim != 2 or not given.size or not np.isfinite(given).all():
        raise ParameterError(f"vectors must be finite, of shape (V, n), got {given.shape}")
    positive("tolerance", tolerance)
    at_least("rounds", rounds.__index__(), 1)
    source = _Source(given, by_rank(prior, len(given)))
    if not source.variance > 1e-30:
        raise ParameterError("vectors must differ: no output helps here")
    if np.ndim(slopes) == 0:  # type: ignore[arg-type]
        count = slopes.__index__()  # type: ignore[union-attr]
        at_least("slopes", count, 1)
        wanted = np.geomspace(*_range(source), count + 1)[:-1]
    else:
        asked = np.unique(np.asarray(slopes, dtype=np.float64))[::-1]
        if asked.ndim != 1 or not len(asked) or not (np.isfinite(asked) & (asked > 0)).all():
            raise ParameterError("slopes must be positive numbers, or how many there shall be")
        wanted = asked * np.log(2)
    start, found = source.start(), []
    for slope in wanted:
        at, lower = _solve(source, start, float(slope), tolerance * np.log(2), rounds.__index__())
        # The next slope is lower: its answers are fewer.
        start = at.answers, at.weights
        found.append((at.bits, at.distortion, lower))
    bits, distortion, bounds = (np.array(part) for part in zip(*found, strict=True))
    return RateDistortion(
        wanted / np.log(2), bits / np.log(2), distortion, bounds / np.log(2), source.variance,
        entropy(source.prior))  # fmt: skip
