"""Converts numbers and dates to arrays and back, for columns of any form."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from functools import partial
from math import inf
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastdx._shared.kinds import Kind, column
from fastdx.exceptions import InputTypeError

Floats: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Days: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]

HELD = ("ns", "ps", "fs", "as")
"""Units of timestamps that do not hold all years of the calendar."""
MOST_PLACES = 400
"""Decimals that a Decimal is released with at most: no float64 has more that are not 0."""
EXACT = Context(prec=1000)
EPOCH = dt.date(1970, 1, 1).toordinal()


# Numbers


def _float(x: Any) -> float:
    """Return a number as a float; one that is too large is infinite, and is clamped."""
    try:
        return float(x)
    except OverflowError:
        return inf if x > 0 else -inf


def _as_given(y: float, x: Any) -> Any:
    """Return a draw in the type of the number that it replaces."""
    if isinstance(x, Decimal):
        exponent = x.as_tuple().exponent
        places = min(max(exponent, -MOST_PLACES), 0) if isinstance(exponent, int) else 0
        return Decimal(repr(float(y))).quantize(Decimal((0, (1,), places)), context=EXACT)
    if isinstance(x, np.generic):
        return _of_dtype(np.array([y]), x.dtype)[0]
    return round(y) if isinstance(x, Integral) else float(y)


def _of_dtype(y: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    """Return draws as an array of a dtype; for integers they are rounded and clamped."""
    if dtype.kind not in "iu":
        most = float(np.finfo(dtype).max)
        return np.clip(y, -most, most).astype(dtype)
    ends = np.iinfo(dtype)
    rounded = np.rint(y)
    # As float64 the largest 64-bit integer rounds up to a value that does not fit.
    new = np.clip(rounded, float(ends.min), np.nextafter(float(ends.max), 0.0)).astype(dtype)
    new[rounded >= float(ends.max)] = ends.max
    return new


def numbers(draw: Floats) -> Kind:
    """Return columns of numbers, with a draw for float64, shape (n,)."""

    def drawn(items: list[Any]) -> list[Any]:
        new = draw(np.array([_float(x) for x in items], dtype=np.float64))
        return [_as_given(y, x) for y, x in zip(new, items, strict=True)]

    def array(given: NDArray[Any]) -> NDArray[Any]:
        return _of_dtype(draw(np.ascontiguousarray(given, dtype=np.float64)), given.dtype)

    def present(given: Any) -> Any:
        import pyarrow

        kind = given.type
        if not pyarrow.types.is_decimal(kind):
            return pyarrow.array(array(given.to_numpy(zero_copy_only=False)), kind)
        unit = Decimal(1).scaleb(-kind.scale)
        most = EXACT.multiply(10**kind.precision - 1, unit)
        new = (y.quantize(unit, context=EXACT) for y in drawn(given.to_pylist()))
        return pyarrow.array([min(max(y, -most), most) for y in new], kind)

    arrow = partial(_arrow, "numbers", ("integer", "floating", "decimal"), present)
    return Kind("numbers", "a number", (Real, Decimal), drawn, arrow, "iuf", array)


def _arrow(name: str, types: Iterable[str], present: Callable[[Any], Any], given: Any) -> Any:
    """Draw for the values of an Array or a ChunkedArray that are no nulls, in its type."""
    import pyarrow

    if isinstance(given, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([_arrow(name, types, present, given.combine_chunks())])
    if pyarrow.types.is_null(given.type):
        return given
    if not any(getattr(pyarrow.types, f"is_{kind}")(given.type) for kind in types):
        raise InputTypeError(f"{name} must be a column of {name}, not {given.type}")
    there = given.is_valid().to_numpy(zero_copy_only=False)
    return present(given.drop_null()).take(pyarrow.array(np.cumsum(there) - 1, mask=~there))


def floats_of(given: Any) -> NDArray[np.float64]:
    """Return a column as float64, shape (n,), without missing values; NaN stays."""
    kept: list[NDArray[np.float64]] = []

    def keep(values: NDArray[np.float64]) -> NDArray[np.float64]:
        kept.append(values.ravel())
        return values

    column(given, numbers(keep))
    return np.concatenate(kept) if kept else np.empty(0)


# Dates


def to_days(dates: Iterable[dt.date]) -> NDArray[np.int64]:
    """Return the days since 1970-01-01 of dates: int64, shape (n,)."""
    each = []
    for date in dates:
        if not isinstance(date, dt.date):
            raise InputTypeError(f"date must be a datetime.date, not {type(date).__name__}")
        each.append(date.toordinal() - EPOCH)
    return np.array(each, dtype=np.int64)


def of_days(days: Iterable[int]) -> list[dt.date]:
    """Return the dates of days since 1970-01-01."""
    return [dt.date.fromordinal(int(day) + EPOCH) for day in days]


def _day(date: Any) -> int:
    if isinstance(date, np.datetime64):
        return int(date.astype("datetime64[D]").astype(np.int64))
    return int(date.toordinal()) - EPOCH


def _of_unit(days: NDArray[np.int64], dtype: Any) -> NDArray[np.datetime64]:
    """Return days as datetime64 of a dtype, clamped to what it holds: nanoseconds end in 2262."""
    if (unit := np.datetime_data(dtype)[0]) in HELD:
        last = np.array(2**63 - 1).astype(f"datetime64[{unit}]")
        most = int(last.astype("datetime64[D]").astype(np.int64))
        # A time zone may move a day.
        days = np.clip(days, 2 - most, most - 2)
    new: NDArray[np.datetime64] = days.astype("datetime64[D]").astype(dtype)
    return new


def _date_as_given(day: int, given: Any) -> Any:
    """Return a day in the type of the date that it replaces, at midnight."""
    if isinstance(given, np.datetime64):
        return _of_unit(np.array([day]), given.dtype)[0]
    date = dt.date.fromordinal(int(day) + EPOCH)
    if not isinstance(given, dt.datetime):
        return date
    return type(given)(date.year, date.month, date.day, tzinfo=given.tzinfo)


def dates(draw: Days) -> Kind:
    """Return columns of dates, with a draw for days since 1970-01-01: int64, shape (n,)."""

    def drawn(items: list[Any]) -> list[Any]:
        new = draw(np.array([_day(x) for x in items], dtype=np.int64))
        return [_date_as_given(y, x) for y, x in zip(new, items, strict=True)]

    def array(given: NDArray[Any]) -> NDArray[Any]:
        days = given.astype("datetime64[D]")
        new = _of_unit(draw(np.where(np.isnat(days), 0, days.astype(np.int64))), given.dtype)
        new[np.isnat(days)] = "NaT"
        return new

    def present(given: Any) -> Any:
        import pyarrow
        from pyarrow import compute

        if (zone := getattr(given.type, "tz", None)) is None:
            return pyarrow.array(array(given.to_numpy(zero_copy_only=False)), given.type)
        local = array(compute.local_timestamp(given).to_numpy(zero_copy_only=False))
        return compute.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")

    arrow = partial(_arrow, "dates", ("date", "timestamp"), present)
    return Kind("dates", "a date", (dt.date, np.datetime64), drawn, arrow, "M", array)
