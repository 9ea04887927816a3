"""Converts columns of numbers and dates to arrays and back: numpy, pandas, polars, Arrow, lists.

Missing values stay missing. The module imports no library that the caller has not imported.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from math import inf
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastdx._shared.missing import is_missing, loaded, pandas_column
from fastdx.exceptions import InputTypeError

Floats: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Days: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]

HELD = ("ns", "ps", "fs", "as")
"""Units of timestamps that do not hold all years of the calendar."""
MOST_PLACES = 400
"""Decimals that a Decimal is released with at most: no float64 has more that are not 0."""
EXACT = Context(prec=1000)
EPOCH = dt.date(1970, 1, 1).toordinal()


def _refuse(name: str, kind: str, value: Any) -> InputTypeError:
    return InputTypeError(f"{name} must be {kind}, not {type(value).__name__}")


def _is_column(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict))


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


def _array_floats(given: NDArray[Any], draw: Floats) -> NDArray[Any]:
    return _of_dtype(draw(np.ascontiguousarray(given, dtype=np.float64)), given.dtype)


def _arrow_floats(column: Any, draw: Floats, arrow: Any) -> Any:
    kind, types = column.type, arrow.types
    if types.is_null(kind):
        return column
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise InputTypeError(f"numbers must be a column of numbers, not {kind}")
    wide = column.cast(arrow.float64(), safe=False)
    mask = wide.is_null().to_numpy(zero_copy_only=False)
    values = wide.fill_null(0.0).to_numpy(zero_copy_only=False)
    drawn = draw(np.ascontiguousarray(values))
    if types.is_integer(kind):
        drawn = _of_dtype(drawn, np.dtype(kind.to_pandas_dtype()))
        return arrow.array(drawn, type=kind, mask=mask)
    if types.is_decimal(kind):
        unit = Decimal(1).scaleb(-kind.scale)
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        each = [None if m else min(max(Decimal(repr(float(y))).quantize(unit), -most), most)
                for y, m in zip(drawn, mask, strict=True)]  # fmt: skip
        return arrow.array(each, type=kind)
    return arrow.array(drawn, mask=mask).cast(kind)


def floats_of(given: Any) -> NDArray[np.float64]:
    """Return a column as float64, shape (n,), without missing values; NaN of numpy arrays stays."""
    kept: list[NDArray[np.float64]] = []

    def keep(values: NDArray[np.float64]) -> NDArray[np.float64]:
        kept.append(values.ravel())
        return values

    arrow = loaded("pyarrow")
    polars = loaded("polars")
    if polars is not None and isinstance(given, polars.Series):
        given = given.drop_nulls().to_numpy()
    elif arrow is not None and isinstance(given, (arrow.Array, arrow.ChunkedArray)):
        given = given.drop_null()
    elif hasattr(given, "dropna"):
        given = given.dropna()
    column(given, keep, NUMBERS)
    return np.concatenate(kept) if kept else np.empty(0)


# Dates


def to_days(dates: Iterable[dt.date]) -> NDArray[np.int64]:
    """Return the days since 1970-01-01 of dates: int64, shape (n,)."""
    each = []
    for date in dates:
        if not isinstance(date, dt.date):
            raise _refuse("date", "a datetime.date", date)
        each.append(date.toordinal() - EPOCH)
    return np.array(each, dtype=np.int64)


def of_days(days: Iterable[int]) -> list[dt.date]:
    """Return the dates of days since 1970-01-01."""
    return [dt.date.fromordinal(int(day) + EPOCH) for day in days]


def _day(date: Any) -> int:
    if isinstance(date, np.datetime64):
        return int(date.astype("datetime64[D]").astype(np.int64))
    return int(date.toordinal()) - EPOCH


def _held(days: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    """Return days clamped to what timestamps of a unit hold: those of nanoseconds end in 2262."""
    if unit not in HELD:
        return days
    last = np.array(2**63 - 1).astype(f"datetime64[{unit}]")
    most = int(last.astype("datetime64[D]").astype(np.int64))
    # A time zone may move a day.
    return np.clip(days, 2 - most, most - 2)


def _of_unit(days: NDArray[np.int64], dtype: Any) -> NDArray[np.datetime64]:
    """Return days as datetime64 of a dtype."""
    held = _held(days, np.datetime_data(dtype)[0])
    new: NDArray[np.datetime64] = held.astype("datetime64[D]").astype(dtype)
    return new


def _date_as_given(day: int, given: Any) -> Any:
    """Return a day in the type of the date that it replaces, at midnight."""
    if isinstance(given, np.datetime64):
        return _of_unit(np.array([day]), given.dtype)[0]
    date = dt.date.fromordinal(int(day) + EPOCH)
    if not isinstance(given, dt.datetime):
        return date
    return type(given)(date.year, date.month, date.day, tzinfo=given.tzinfo)


def _array_days(given: NDArray[Any], draw: Days) -> NDArray[Any]:
    days = given.astype("datetime64[D]")
    drawn = draw(np.where(np.isnat(days), 0, days.astype(np.int64)))
    new = _of_unit(drawn, given.dtype)
    new[np.isnat(days)] = "NaT"
    return new


def _arrow_days(column: Any, draw: Days, arrow: Any) -> Any:
    kind, types = column.type, arrow.types
    if types.is_null(kind):
        return column
    if not (types.is_date(kind) or types.is_timestamp(kind)):
        raise InputTypeError(f"dates must be a column of dates, not {kind}")
    unit = kind.unit if types.is_timestamp(kind) else "D"
    if types.is_timestamp(kind) and kind.tz is not None:
        new = _listed(column.to_pylist(), lambda days: _held(draw(days), unit), DATES)
        return arrow.array(new, type=kind)
    days = column.cast(arrow.date32(), safe=False).cast(arrow.int32())
    mask = days.is_null().to_numpy(zero_copy_only=False)
    values = days.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    drawn = _held(draw(np.ascontiguousarray(values)), unit).astype(np.int32)
    return arrow.array(drawn, type=arrow.int32(), mask=mask).cast(arrow.date32()).cast(kind)


# Columns of both


class _Kind(NamedTuple):
    """What columns of numbers and of dates differ in."""

    name: str
    one: str
    types: tuple[type, ...]
    """The types of single values."""
    number: Callable[[Any], float]
    """A value as a number."""
    as_given: Callable[[Any, Any], Any]
    """A draw in the type of the value that it replaces."""
    dtypes: str
    """The kinds of numpy's dtypes."""
    dtype: type
    """The dtype of what is drawn."""
    array: Callable[[NDArray[Any], Any], NDArray[Any]]
    arrow: Callable[[Any, Any, Any], Any]


NUMBERS = _Kind("numbers", "a number", (Real, Decimal), _float, _as_given, "iuf", np.float64,
                _array_floats, _arrow_floats)  # fmt: skip
DATES = _Kind("dates", "a date", (dt.date, np.datetime64), _day, _date_as_given, "M", np.int64,
              _array_days, _arrow_days)  # fmt: skip


def column(given: Any, draw: Floats | Days, kind: _Kind) -> Any:  # noqa: PLR0911, a case a kind
    """Draw replacements for a value, or for a column of values of any kind."""
    if is_missing(given):
        return given
    if isinstance(given, kind.types) and not isinstance(given, (bool, np.bool_)):
        return _listed([given], draw, kind)[0]
    pandas, polars, arrow = loaded("pandas"), loaded("polars"), loaded("pyarrow")
    if isinstance(given, np.ma.MaskedArray):
        raise _refuse(kind.name, "an array without a mask", given)
    if isinstance(given, np.ndarray) and given.dtype.kind in kind.dtypes:
        return kind.array(given, draw)
    if pandas is not None and isinstance(given, (pandas.Series, pandas.Index)):
        return pandas_column(given, pandas, lambda values: column(values, draw, kind))
    if polars is not None and isinstance(given, polars.Series):
        return polars.Series(given.name, column(given.to_arrow(), draw, kind)).cast(given.dtype)
    if arrow is not None and isinstance(given, arrow.ChunkedArray):
        return arrow.chunked_array([kind.arrow(given.combine_chunks(), draw, arrow)])
    if arrow is not None and hasattr(given, "__arrow_c_array__"):  # arrow.Array too
        return kind.arrow(arrow.array(given), draw, arrow)
    if not _is_column(given):
        raise _refuse(kind.name, f"{kind.one} or a column of {kind.name}", given)
    return _listed(given, draw, kind)


def _listed(given: Any, draw: Any, kind: _Kind, name: str = "") -> Any:
    """Draw replacements for the items of a list in one call; each nested list gets its own call."""
    name = name or kind.name
    items = given.ravel().tolist() if isinstance(given, np.ndarray) else list(given)
    flat = [i for i, x in enumerate(items) if not is_missing(x) and not _is_column(x)]
    for i in flat:
        if not isinstance(items[i], kind.types) or isinstance(items[i], (bool, np.bool_)):
            raise _refuse(f"{name}[{i}]", kind.one, items[i])
    drawn = draw(np.array([kind.number(items[i]) for i in flat], dtype=kind.dtype))
    new = [_listed(x, draw, kind, f"{name}[{i}]") if _is_column(x) else x
           for i, x in enumerate(items)]  # fmt: skip
    for i, y in zip(flat, drawn, strict=True):
        new[i] = kind.as_given(y, items[i])
    if isinstance(given, np.ndarray):
        array = np.empty(len(new), dtype=object)
        array[:] = new
        return array.reshape(given.shape)
    return new
