"""Draws against a law: χ², with the rate of false alarms of all tests."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fastdx import Mechanism

AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism)

ALARM = 1e-7
"""The probability that one comparison of a true law with draws fails."""
LEAST = 10.0
"""Outcomes that are expected fewer times than this are taken together."""


def p_value(counts: ArrayLike, law: ArrayLike) -> float:
    """The p-value of how often each outcome was drawn, by its probability."""
    counts, law = np.asarray(counts, float), np.asarray(law, float)
    assert abs(law.sum() - 1) < 1e-4
    expected = law / law.sum() * counts.sum()
    if counts[expected == 0].any():  # what is impossible was drawn
        return 0.0
    order = np.argsort(expected, kind="stable")
    starts, group = [0], 0.0
    for at, share in enumerate(expected[order].tolist()):
        if group >= LEAST:
            starts.append(at)
            group = 0.0
        group += share
    if len(starts) > 1 and group < LEAST:
        starts.pop()
    if len(starts) == 1:
        return 1.0
    seen, wanted = (np.add.reduceat(x[order], starts) for x in (counts, expected))
    return float(stats.chisquare(seen, wanted).pvalue)


def assert_follows(counts: ArrayLike, law: ArrayLike) -> None:
    """Compare how often each outcome was drawn with its probability."""
    assert (p := p_value(counts, law)) > ALARM, p


def assert_draws(mechanism: Mechanism, word: str, law: ArrayLike, draws: int = 200_000) -> None:
    """Draw the replacements of a word, and compare them with its law."""
    drawn = mechanism.sample(word, draws)
    assert_follows(np.bincount(drawn, minlength=len(mechanism.space)), law)


def assert_alike(one: ArrayLike, other: ArrayLike) -> None:
    """Compare how often each outcome was drawn in two samples of one law."""
    table = np.array([one, other])
    rare = table.sum(axis=0) < 2 * LEAST
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    assert (p := stats.chi2_contingency(table[:, table.any(axis=0)]).pvalue) > ALARM, p


def as_users_draw(mechanism: AnyMechanism) -> AnyMechanism:
    """A seeded mechanism with the same keys that draws as one without a seed: by its fast paths."""
    assert mechanism.seed is not None
    held = {**mechanism._held(), "known_keys": True}
    return type(mechanism)._from_spec(mechanism._given_spec(), held)
