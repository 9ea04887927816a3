"""The bound Pr[M(w)=y] ≤ e^(ε·d(w,w') + slack)·Pr[M(w')=y] against draws.

A guarantee that allows everything passes every comparison, so it is an error here. A seeded
mechanism has such a guarantee: draw with a seed, and take the claim from a twin without one.
"""

from itertools import product
from math import exp, isfinite

import numpy as np
from scipy.stats import beta

from fastdx import Guarantee, Mechanism
from helpers.laws import Numbers, law_of, ratios_of

ALPHA = 1e-11
"""The probability that one side of one interval is wrong."""


def slack(guarantee: Guarantee) -> float:
    """The slack of a guarantee that holds."""
    assert guarantee.void is None, guarantee.void
    assert isfinite(guarantee.slack), f"slack = {guarantee.slack}: nothing can be refuted"
    return guarantee.slack


def allowed(guarantee: Guarantee, a: str, b: str) -> float:
    """The largest log-ratio that a guarantee allows between two words."""
    bound = guarantee.bound([a], [b]) + slack(guarantee)
    assert isfinite(bound), f"bound = {bound} for {a!r} and {b!r}: nothing can be refuted"
    return bound


def assert_bound(drawn: Mechanism, claim: Guarantee, draws: int = 50_000) -> None:
    """Compare Clopper-Pearson intervals of all words and outputs with the claim."""
    words = drawn.space.words
    counts = np.array([np.bincount(drawn.sample(w, draws), minlength=len(words)) for w in words])
    bounds = np.array([[allowed(claim, a, b) for b in words] for a in words])
    assert_counts(counts, draws, bounds, f"{claim!r} of {words}")


def intervals(counts: Numbers, draws: int) -> tuple[Numbers, Numbers]:
    """Clopper-Pearson: the lower and the upper end of each probability."""
    with np.errstate(invalid="ignore"):
        low = np.where(counts == 0, 0.0, beta.ppf(ALPHA, counts, draws - counts + 1))
        high = np.where(counts == draws, 1.0, beta.isf(ALPHA, counts + 1, draws - counts))
    return low, high


def assert_counts(counts: Numbers, draws: int, bounds: Numbers, claim: str) -> None:
    """Compare Clopper-Pearson intervals of a row for each input with what is claimed of pairs."""
    assert (counts.sum(axis=1) == draws).all()
    low, high = intervals(counts, draws)
    for i, j in product(range(len(counts)), repeat=2):
        largest = exp(min(bounds[i, j], 700.0))
        assert (low[i] <= largest * high[j]).all(), f"REFUTED: {claim} for inputs {i} and {j}"


def assert_exact_bound(made: Mechanism, claim: Guarantee | None = None) -> None:
    """Compare the log-ratios of all words and outputs with the claim."""
    claim = made.guarantee if claim is None else claim
    words, lost = made.space.words, ratios_of(law_of(made))
    # f64 logarithms are exact to 1e-13.
    largest = np.array([[allowed(claim, a, b) for b in words] for a in words])
    assert (lost <= largest + 1e-12).all(), f"REFUTED: {claim!r}"
