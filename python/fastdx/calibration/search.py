"""The border of a promise: the largest ε that keeps it, by few evaluations."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, log, log1p
from sys import float_info

from fastdx.exceptions import ParameterError

__all__ = ["check_tolerance", "log_ratio", "narrowed"]


def check_tolerance(tolerance: float) -> None:
    """Refuse a relative tolerance that no search can keep."""
    if not 1e-9 <= tolerance < 1:
        raise ParameterError(f"tolerance must be from 1e-9 to below 1, got {tolerance}")


def log_ratio(value: float, most: float) -> float:
    """Return ln(value / most): an excess that is close to a straight line of ln ε."""
    if value > most:  # whatever the division rounds to
        return max(log(value / most), float_info.min)
    return log(value / most) if value > 0 else -inf


def narrowed(
    excess: Callable[[float], float | None], low: float, high: float, tolerance: float
) -> tuple[float, float]:
    """Narrow two ε around the border of a promise, to a ratio of at most 1 + tolerance.

    Regula falsi over ln ε; an end that stays counts half (the Illinois rule). Where two steps have
    not halved the interval, the next one does. So it is never much slower than bisection, and on a
    smooth excess it takes a third of the evaluations.

    Parameters
    ----------
    excess : callable
        Of ε: at most 0 where the promise is kept, above 0 where it is broken, None where there is
        no such mechanism. Evaluated at both ends too, so an expensive one remembers.
    low, high : float
        An ε that keeps the promise and a larger one that does not.
    tolerance : float
        Of ε, relative.

    Returns
    -------
    tuple of float
        The same of both ends, each of which was evaluated.
    """

    def at(epsilon: float) -> float:
        return inf if (found := excess(epsilon)) is None else found

    a, b = log(low), log(high)
    at_a, at_b = at(low), at(high)
    close = log1p(tolerance)
    widths, kept_before = [inf, inf], None
    while (width := b - a) > close:
        x = (a + b) / 2
        if width <= widths[-2] / 2 and isfinite(at_a) and isfinite(at_b):
            x = a - at_a * width / (at_b - at_a)
        # Near an end one step beyond the border ends the search.
        margin = min(0.9 * close, width / 2)
        epsilon = exp(min(max(x, a + margin), b - margin))
        found = at(epsilon)
        kept = found <= 0
        if kept:
            low, a, at_a = epsilon, log(epsilon), found
            at_b /= 2 if kept_before is True else 1
        else:
            high, b, at_b = epsilon, log(epsilon), found
            at_a /= 2 if kept_before is False else 1
        kept_before = kept
        widths.append(width)
    return low, high
