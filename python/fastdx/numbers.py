"""Numbers and dates by their own metrics: |x - x'|, |ln x - ln x'|, days.

A number is rounded to a public grid, clamped to a public range, and gets an offset of the two-sided
geometric law. For every output y, Pr[y|x] ≤ exp(ε·d(x,x'))·Pr[y|x'], exactly for the integers that
are drawn; d is the distance on the grid. `src/numbers/geometric.rs` has the law and the proof
(Ghosh, Roughgarden, Sundararajan 2009: the geometric mechanism).

`Number` and `Date` draw columns by themselves, and the numbers and dates of texts as ``numbers=``
and ``dates=`` of every mechanism.

>>> from fastdx.numbers import Number
>>> prices = Number(epsilon=20.0)
>>> drawn = prices.privatize([12.5, 1249.9, None])
>>> len(drawn), drawn[2]
(3, None)
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from math import inf
from statistics import NormalDist
from typing import Any, ClassVar, Generic, NamedTuple, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import NumberCore
from fastdx._shared import kinds
from fastdx._shared.checks import check_type, inside
from fastdx._shared.kinds import column, date_of, day_of, floats_of
from fastdx.exceptions import InputTypeError, ParameterError

__all__ = ["Date", "Estimate", "Number"]


class Estimate(NamedTuple):
    """A mean in the unit of the numbers, or a count, with the ends of its confidence interval."""

    value: float
    low: float
    high: float


def _sum_of(values: NDArray[np.float64], level: float, weight: float = 1.0) -> Estimate:
    """Return the sum of independent values, times a weight, and its normal interval."""
    inside("level", level)
    value = weight * float(values.sum())
    if len(values) == 1:
        return Estimate(value, -inf, inf)
    quantile = NormalDist().inv_cdf((1.0 + level) / 2.0)
    half = quantile * weight * float(values.std(ddof=1)) * len(values) ** 0.5
    return Estimate(value, value - half, value + half)


X = TypeVar("X", float, dt.date)
D = TypeVar("D")


class _Drawn(Generic[X]):
    """The common part of numbers and dates."""

    __slots__ = ("_core", "_seed")
    _dtype: ClassVar[str]
    """The dtype of the grid's points."""

    def __init__(self, settings: dict[str, Any], seed: int | None) -> None:
        known = {name: x for name, x in settings.items() if x is not None}
        for name, x in known.items():
            try:
                json.dumps(x, default=float, allow_nan=False)
            except TypeError:
                what = type(x).__name__
                raise InputTypeError(f"{name} must be a number or a str, not {what}") from None
            except ValueError:
                raise ParameterError(f"{name} must be a finite number, got {x}") from None
        self._core = NumberCore(json.dumps(known, default=float), isinstance(self, Date), seed)
        self._seed = seed

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in (found := self.settings):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)
        return found[name]

    @property
    def settings(self) -> dict[str, Any]:
        """All parameters but the seed, as ``numbers`` and ``dates`` of a Spec hold them."""
        settings: dict[str, Any] = json.loads(self._core.settings())
        return settings

    @property
    def seed(self) -> int | None:
        """The seed, or None. A seeded one protects nobody: it is for tests."""
        return self._seed

    @property
    def certificate(self) -> float:
        """The largest log-ratio per unit of the grid's distance, from the integers that are drawn.

        At most ε: computed from every pair of neighbouring weights, for all inputs and outputs.
        """
        return self._core.certify() / float(self.settings.get("unit", 1.0))

    def bound(self, a: X, b: X) -> float:
        """Return the proved bound on the log-ratio of two inputs, in nats: ε·d on the grid."""
        return self._core.bound(self._place(a), self._place(b))

    def probabilities(self, x: X) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the points of the grid, ascending, and the probability of each for an input.

        Shape (n,) each; the points are float64, or datetime64[D] of dates. The input is clamped and
        rounded to the grid. A grid of more than 4,194,304 points is a `ParameterError`.
        """
        law = self._core.probabilities(self._place(x))
        low, _ = self._core.ends
        return self._core.values(np.arange(low, low + len(law))).astype(self._dtype), law

    def sample(self, x: X, size: SupportsIndex) -> NDArray[Any]:
        """Return independent draws for one input: shape (size,), as the points of the grid."""
        written = np.full(size.__index__(), self._float(x))
        return self._core.privatize(written).astype(self._dtype)

    @staticmethod
    def _float(x: Any) -> float:
        """Return an input as the core has it."""
        return float(x)

    def _place(self, x: X) -> int:
        return self._core.place(self._float(x))

    @property
    def guarantee(self) -> str:
        """The guarantee as a sentence."""
        s = {key: f"{x:g}" if isinstance(x, float) else x for key, x in self.settings.items()}
        void = "" if self._seed is None else "NOTHING IS PROTECTED: it is SEEDED. Otherwise: "
        log = "|ln x - ln x'| (for 0 and unlike signs along the grid)"
        metric = {"log": log, "linear": "|x - x'|"}.get(
            str(s.get("scale")), "the days between them"
        )
        what, grid = ("number", s["unit"]) if "scale" in s else ("date", "one day")
        return (
            f"{void}Whoever sees a released {what} y can prefer one original {what} x to another "
            f"x' by a likelihood ratio of at most exp({s['epsilon']}·d), where d is {metric} after "
            f"both are clamped to {s['low']} to {s['high']} and rounded to a grid of {grid}. Why: "
            "the two-sided geometric law, clamped; drawn as integers, for which it holds exactly. "
            f"Not covered: that a {what} stands there, and its type."
        )

    def _of_mechanism(self) -> str:
        """Return the settings as JSON; the core calls it."""
        if self._seed is not None:
            raise ParameterError("seed must be the mechanism's own, got one of a Number or Date")
        return self._core.settings()

    def __eq__(self, other: object) -> bool:
        """Whether it has the same law, grid and seed."""
        if not isinstance(other, _Drawn) or type(self) is not type(other):
            return NotImplemented
        return (self.settings, self._seed) == (other.settings, other._seed)

    def __hash__(self) -> int:
        return hash((type(self), self._core.settings(), self._seed))

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self._core.settings(), self._seed)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        if self._seed is not None:
            shown += f", seed={self._seed}: REPRODUCIBLE, FOR TESTS ONLY"
        return f"{type(self).__name__}({shown})"


def restored(kind: Callable[..., D], settings: str | None, seed: int | None = None) -> D | None:
    """Make the Number or Date of its settings; None without any."""
    return None if settings is None else kind(**json.loads(settings), seed=seed)


class Number(_Drawn[float]):
    """Numbers by the two-sided geometric law on a grid.

    On the log scale the grid is the line …, -s·exp(u), -s, 0, s, s·exp(u), … for the smallest size
    s and the unit u; so sign and zero are protected too. A number outside the range is clamped
    before the draw, and a draw outside it too: the truncated geometric mechanism of Ghosh et al.
    (2009).

    Parameters
    ----------
    epsilon : float
        ε per 1 of the metric, positive: per 1 of ln x (a factor of e), or per 1 of x.
    scale : 'log' or 'linear', optional
        The metric: |ln x - ln x'| (default) or |x - x'|.
    unit : float, optional
        The step of the grid: by default 0.01 of ln x, about one per cent, or 1. ``epsilon * unit``
        must be at least 1e-6.
    low, high : float, optional
        The public range: by default ±1e9 on the log scale; must be given on the linear one.
    smallest : float, optional
        On the log scale the smallest size beside zero, 0.01 by default.
    decimal : '.' or ',', optional
        In text, the sign before decimals.
    seed : int, optional
        For tests only: makes the output reproducible, and thereby unprotected.

    Raises
    ------
    ParameterError
        A parameter outside its domain.

    Examples
    --------
    >>> from fastdx.numbers import Number
    >>> ages = Number(0.5, "linear", low=0, high=120)
    >>> values, p = ages.probabilities(40)
    >>> values.shape, float(values[p.argmax()]), round(float(p.sum()), 9)
    ((121,), 40.0, 1.0)
    >>> ages.bound(40, 44)
    2.0000000000000004
    """

    __slots__ = ()
    _dtype = "float64"

    def __init__(
        self,
        epsilon: float,
        scale: str = "log",
        *,
        unit: float | None = None,
        low: float | None = None,
        high: float | None = None,
        smallest: float | None = None,
        decimal: str = ".",
        seed: int | None = None,
    ) -> None:
        numbers = {"epsilon": epsilon, "unit": unit, "low": low, "high": high, "smallest": smallest}
        super().__init__({"scale": scale, "decimal": decimal, **numbers}, seed)

    def privatize(self, numbers: Any) -> Any:
        """Replace a number, or each number of a list or a column.

        Parameters
        ----------
        numbers : int, float, Decimal, list, numpy, pandas, polars or Arrow column
            The numbers. None, NaN and nulls stay.

        Returns
        -------
        object
            As given: type, index, name and nulls are kept. Whole numbers are rounded, Decimals
            have as many places as they had: the type is released.

        Examples
        --------
        >>> from decimal import Decimal
        >>> from fastdx.numbers import Number
        >>> n = Number(50.0)
        >>> type(n.privatize(7)), n.privatize(Decimal("12.50")).as_tuple().exponent
        (<class 'int'>, -2)
        """
        return column(numbers, kinds.numbers(self._core.privatize))

    def find(self, text: str, *, released: bool = False) -> list[float]:
        """Return the numbers that ``numbers=`` finds in a text, as they are written.

        Dates, and what looks like a part of one, are no numbers, whether ``dates=`` draws them or
        not.

        Parameters
        ----------
        text : str
            The text.
        released : bool, optional
            Whether the text is a release: then 5 is a number even if it was drawn as 2013, which
            a text that is read for the first time has as a year, and a word.

        Examples
        --------
        >>> from fastdx.numbers import Number
        >>> Number(20.0).find("Refund 1,249.90 € and 12 % of -3 on 3 May, call 555 123 4567")
        [1249.9, 12.0, -3.0]
        >>> Number(20.0).find("in 2013"), Number(20.0).find("in 2013", released=True)
        ([], [2013.0])
        """
        return self._core.find(text, released)

    def estimate_mean(self, released: Any, *, level: float = 0.95) -> Estimate:
        """Estimate the mean of the numbers that were written, from those that were released.

        The law is known, so it is undone on average: for the two-sided geometric law with ratio r,
        h(y) = f(y) - r/(1-r)²·(f(y+1) - 2·f(y) + f(y-1)) has the expectation f(x), where f is the
        value of a point, and at the low end h = f(0) - r/(1-r)·(f(1) - f(0)), likewise at the high
        one. So the mean of h is unbiased for the numbers on the grid.

        Parameters
        ----------
        released : column of numbers
            What `privatize` returned, or what ``find(text, released=True)`` found in releases.
        level : float, optional
            The confidence of the interval, between 0 and 1.

        Returns
        -------
        Estimate
            With the interval of the normal approximation by the spread of h, so it wants some
            dozens of numbers. Rounding that the form of a text makes is not undone.
        """
        values = self._undone(released, lambda x: x[None, :])[0]
        return _sum_of(values, level, 1.0 / len(values))

    def estimate_histogram(
        self, released: Any, edges: ArrayLike, *, level: float = 0.95
    ) -> list[Estimate]:
        """Estimate how many of the numbers that were written lie in each bin.

        As `estimate_mean`, where f is 1 in the bin and 0 outside: unbiased for the numbers on the
        grid, and possibly below 0. Only draws beside an edge are counted in another bin than their
        own, so bins that are much wider than a draw's step are estimated well.

        Parameters
        ----------
        released, level : column of numbers, float
            As for `estimate_mean`; the confidence is that of each interval.
        edges : array_like of float, shape (n + 1,)
            The ends of the bins, ascending. The last bin has its upper end, the others do not.
        """
        ends = np.asarray(edges, dtype=np.float64)
        if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all():
            raise ParameterError("edges must be at least 2 numbers that ascend")

        def bins(x: NDArray[np.float64]) -> NDArray[np.float64]:
            last = np.where(x == ends[-1], 1, 0)
            found = np.searchsorted(ends, x, side="right") - 1 - last
            return np.equal.outer(np.arange(len(ends) - 1), found).astype(np.float64)

        return [_sum_of(row, level) for row in self._undone(released, bins)]

    def _undone(
        self, released: Any, f: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return h of each release, a row for each row of f: its expectation is f(x)."""
        y = floats_of(released)
        y = y[~np.isnan(y)]
        if not len(y):
            raise ParameterError("released must be at least one number, got none")
        at = self._core.places(np.ascontiguousarray(y))
        low, high = self._core.ends
        here = f(self._core.values(at))
        # Beyond an end is the end: of `up` and `down` one is 0 there, on a grid of one point both.
        up = f(self._core.values(np.minimum(at + 1, high))) - here
        down = here - f(self._core.values(np.maximum(at - 1, low)))
        r = self._core.integers()[0] / 2.0**64
        at_end = (at == low) | (at == high)
        h: NDArray[np.float64] = here - r / (1.0 - r) ** np.where(at_end, 1, 2) * (up - down)
        return h


class Date(_Drawn[dt.date]):
    """Dates by the two-sided geometric law on the days of a range.

    Parameters
    ----------
    epsilon : float
        ε per day, positive.
    low, high : datetime.date or str, optional
        The public range, 1900-01-01 to 2099-12-31 by default. A date outside is clamped before the
        draw, and a draw outside it too. In text a date without a year is no date.
    order : 'dmy' or 'mdy', optional
        In text, the order of 03/05/2026. Without it such a date is a word.
    seed : int, optional
        As for `Number`.

    Examples
    --------
    >>> import datetime as dt
    >>> from fastdx.numbers import Date
    >>> d = Date(0.1)
    >>> isinstance(d.privatize(dt.date(2026, 5, 3)), dt.date)
    True
    >>> round(d.bound(dt.date(2026, 5, 3), dt.date(2026, 5, 13)), 9)
    1.0
    """

    __slots__ = ()
    _dtype = "datetime64[D]"

    def __init__(
        self,
        epsilon: float,
        *,
        low: dt.date | str | None = None,
        high: dt.date | str | None = None,
        order: str | None = None,
        seed: int | None = None,
    ) -> None:
        low, high = (x.isoformat()[:10] if isinstance(x, dt.date) else x for x in (low, high))
        super().__init__({"epsilon": epsilon, "low": low, "high": high, "order": order}, seed)

    @staticmethod
    def _float(x: Any) -> float:
        check_type("date", x, dt.date)
        return float(day_of(x))

    def _drawn(self, days: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._core.privatize(days.astype(np.float64)).astype(np.int64)

    def privatize(self, dates: Any) -> Any:
        """Replace a date, or each date of a list or a column, as `Number.privatize` does.

        The time of a datetime becomes midnight, and its time zone stays.
        """
        return column(dates, kinds.dates(self._drawn))

    def find(self, text: str) -> list[dt.date]:
        """Return the dates that ``dates=`` finds in a text.

        Examples
        --------
        >>> from fastdx.numbers import Date
        >>> Date(0.1, order="dmy").find("3 May 2026, 2026-05-04 or 05/05/2026; not 12/31/99")
        [datetime.date(2026, 5, 3), datetime.date(2026, 5, 4), datetime.date(2026, 5, 5)]
        """
        return [*map(date_of, self._core.find(text, False))]
