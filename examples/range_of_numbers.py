"""How far off numbers are at the ends of their range: clamped, and conditioned on the range.

python examples/range_of_numbers.py

Both laws are the two-sided geometric one on 101 points, of the same proved ε a step. Clamped, a
draw outside the range becomes its end; conditioned, no draw lies outside. Errors are |y - x|, or
|z - x| for the best guess z that a receiver makes of y, in per cent of the range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastdx.numbers import Number

Law = NDArray[np.float64]
"""Row x: the probability of every output for the input x."""

POINTS = 101
APART = np.abs(np.arange(POINTS)[:, None] - np.arange(POINTS)[None, :])


def clamped(epsilon: float) -> Law:
    """Return the law of `fastdx.numbers`."""
    number = Number(epsilon, "linear", low=0, high=POINTS - 1)
    return np.array([number.probabilities(x)[1] for x in range(POINTS)])


def conditioned(epsilon: float) -> Law:
    """Return exp(-a·|y-x|) over the range, for the largest a whose proved ε is no larger."""

    def law(a: float) -> Law:
        weights = np.exp(-a * APART)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(law(middle)) <= epsilon else (low, middle)
    return law(low)


def loss(law: Law) -> float:
    """Return the largest log-ratio of a step."""
    return float(np.abs(np.diff(np.log(law), axis=0)).max())


def errors(law: Law) -> tuple[float, float, float, float]:
    """Return the mean error at the middle, at an end, of all, and of all if read best."""
    each = (law * APART).sum(axis=1)
    # For every y and z the expected |z - x| over inputs that are equally likely.
    guessed = (law.T @ APART).min(axis=1).sum() / POINTS
    found = each[POINTS // 2], each[0], each.mean(), guessed
    middle, end, mean, best = (100.0 * float(x) / (POINTS - 1) for x in found)
    return middle, end, mean, best


def main() -> None:
    print("| ε·width | middle | an end | all, on average | all, read best |")
    print("|---|---|---|---|---|")
    for width in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0):
        epsilon = width / (POINTS - 1)
        both = zip(errors(clamped(epsilon)), errors(conditioned(epsilon)), strict=True)
        cells = " | ".join(f"{a:.1f} or {b:.1f}" for a, b in both)
        print(f"| {width:g} | {cells} |")


if __name__ == "__main__":
    main()
