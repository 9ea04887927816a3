"""Confidence intervals of measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy import stats

from fastdx._shared.intervals import Interval
from fastdx.exceptions import ParameterError


def over_trials(
    values: Iterable[float],
    *,
    reused: float = 0.0,
    confidence: float = 0.95,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Return the mean of independent trials and its Student interval.

    Parameters
    ----------
    values : iterable of float
        The value of each trial; at least two.
    reused : float, optional
        For trials that are different splits of the same texts: the number of test texts divided by
        the number of training texts. Such trials are not independent, so the interval is widened as
        in Nadeau and Bengio (2003, "Inference for the generalization error").
    confidence : float, optional
        The confidence of the interval.
    within : (float, float), optional
        The range of possible values; the interval is cut to it.

    Examples
    --------
    >>> from fastdx.lab.evaluation import over_trials
    >>> print(over_trials([0.7, 0.8, 0.9]))
    0.800 [0.552, 1.048]
    """
    x = np.asarray(list(values), dtype=np.float64)
    if len(x) < 2:
        raise ParameterError(f"values must be at least 2 trials, got {len(x)}")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    error = float(np.sqrt(x.var(ddof=1) * (1 / len(x) + reused)))
    half = float(stats.t.ppf((1 + confidence) / 2, len(x) - 1)) * error
    mean = float(x.mean())
    return Interval(mean, max(mean - half, within[0]), min(mean + half, within[1]), confidence)
