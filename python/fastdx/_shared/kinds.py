"""Columns of values in any form: single values, lists, numpy, pandas, polars, Arrow.

A column keeps its form, name, index and type, and its missing values. The module imports no library
that the caller has not imported, except pyarrow for columns that go by Arrow's C interface.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal
from functools import partial
from math import inf, isnan
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastdx.exceptions import InputTypeError

Floats: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Days: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]

HELD = ("ns", "ps", "fs", "as")
"""Units of timestamps that do not hold all years of the calendar."""
MOST_PLACES = 400
"""Decimals that a Decimal is released with at most: no float64 has more that are not 0."""
EXACT = Context(prec=1000)
EPOCH = dt.date(1970, 1, 1).toordinal()


def loaded(name: str) -> Any:
    """Return a library if the caller has imported it, else None."""
    return sys.modules.get(name)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT, pandas.NA, or a Decimal NaN."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (np.datetime64, np.floating)):
        return bool(np.isnan(value))
    pandas = loaded("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


class Kind(NamedTuple):
    """The differences between columns of texts, of numbers and of dates."""

    name: str
    one: str
    """A single value, for errors."""
    types: tuple[type, ...]
    """The types of single values."""
    drawn: Callable[[list[Any]], Iterable[Any]]
    """Draws for some values, in their types."""
    arrow: Callable[[Any], Any]
    """Draws for an Array or a ChunkedArray."""
    dtypes: str = ""
    """The kinds of numpy's dtypes that `array` takes."""
    array: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    """Draws for an array."""


def column(given: Any, kind: Kind) -> Any:  # noqa: PLR0911, a case a form
    """Draw replacements for a value, or for a column of values of any form."""
    if is_missing(given):
        return given
    if _is_one(given, kind):
        return next(iter(kind.drawn([given])))
    if isinstance(given, np.ma.MaskedArray):
        raise _refuse(kind.name, "an array without a mask", given)
    if isinstance(given, np.ndarray):
        return kind.array(given) if given.dtype.kind in kind.dtypes else _object_array(given, kind)
    pandas, polars, arrow = loaded("pandas"), loaded("polars"), loaded("pyarrow")
    if pandas is not None and isinstance(given, (pandas.Series, pandas.Index)):
        return _pandas(given, pandas, kind)
    if polars is not None and isinstance(given, polars.Series):
        new = polars.Series(given.name, kind.arrow(given.to_arrow()))
        return new if new.dtype == given.dtype else new.cast(given.dtype)
    if arrow is not None and isinstance(given, arrow.Scalar):
        return kind.arrow(arrow.array([given.as_py()], given.type))[0]
    if hasattr(given, "__arrow_c_array__") or hasattr(given, "__arrow_c_stream__"):
        import pyarrow

        array = hasattr(given, "__arrow_c_array__")
        return kind.arrow((pyarrow.array if array else pyarrow.chunked_array)(given))
    if not _is_list(given):
        raise _refuse(kind.name, f"{kind.one}, a list or a column of {kind.name}", given)
    return listed(given, kind)


def _refuse(name: str, wanted: str, value: Any) -> InputTypeError:
    return InputTypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def _is_one(value: Any, kind: Kind) -> bool:
    return isinstance(value, kind.types) and not isinstance(value, (bool, np.bool_))


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict))


def listed(given: Iterable[Any], kind: Kind) -> list[Any]:
    """Draw replacements for the items of a list, and of lists in it, in one call."""
    items: list[Any] = []
    try:
        shape = shape_of(given, kind.name, kind, items)
    except RecursionError:
        shape = None
    if shape is None:
        raise InputTypeError(f"{kind.name} is a list that is nested too deeply, or holds itself")
    return _refilled(shape, iter(kind.drawn(items)))


def shape_of(given: Iterable[Any], name: str, kind: Kind, items: list[Any]) -> list[Any]:
    """Collect the values of a list; return it with True for a value, and missing ones in tuples."""
    found: list[Any] = []
    for i, item in enumerate(given):
        if is_missing(item):
            found.append((item,))
        elif _is_one(item, kind):
            items.append(item)
            found.append(True)
        elif _is_list(item):
            found.append(shape_of(item, f"{name}[{i}]", kind, items))
        else:
            raise _refuse(f"{name}[{i}]", kind.one, item)
    return found


def _refilled(shape: list[Any], new: Iterator[Any]) -> list[Any]:
    return [
        next(new) if item is True else item[0] if isinstance(item, tuple) else _refilled(item, new)
        for item in shape
    ]


def _object_array(given: NDArray[Any], kind: Kind) -> NDArray[Any]:
    new = np.empty(given.size, dtype=object)
    new[:] = listed(given.ravel().tolist(), kind)
    return new.reshape(given.shape)


def _pandas(given: Any, pandas: Any, kind: Kind) -> Any:
    """Draw replacements for a pandas column through an Arrow or numpy array, or a list.

    Categories, and the fill value of a sparse column, are values: new ones take their place.
    """
    if isinstance(given, pandas.MultiIndex):
        raise InputTypeError(f"{kind.name} is a MultiIndex: take its levels as columns")
    dtype, values = given.dtype, given.array
    if isinstance(dtype, pandas.CategoricalDtype):
        new = pandas.Categorical(column(given.astype(object).tolist(), kind), ordered=dtype.ordered)
        dtype = new.dtype
    elif isinstance(dtype, pandas.SparseDtype):
        dtype = dtype.subtype
        new = column(values.to_dense(), kind)
    elif isinstance(dtype, pandas.DatetimeTZDtype):
        local = pandas.DatetimeIndex(given).tz_localize(None).to_numpy()
        new = pandas.DatetimeIndex(column(local, kind)).tz_localize(
            dtype.tz, ambiguous=[True] * len(local), nonexistent="shift_forward")  # fmt: skip
    elif hasattr(values, "__arrow_array__") and hasattr(dtype, "__from_arrow__"):
        surrogate = None
        try:
            old = values.__arrow_array__()
        except UnicodeEncodeError as error:
            surrogate = error.start
        if surrogate is not None:
            # Outside of the clause, because the handled error holds the text.
            raise InputTypeError(f"a text holds a lone surrogate, character {surrogate} of it")
        new = dtype.__from_arrow__(column(old, kind))
    else:
        new = column(given.to_numpy(), kind)
    if isinstance(given, pandas.Index):
        return pandas.Index(new, name=given.name, dtype=dtype)
    return pandas.Series(new, index=given.index, name=given.name, dtype=dtype)


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


def day_of(date: Any) -> int:
    """Return the days since 1970-01-01 of a date."""
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


def date_of(day: float) -> dt.date:
    """Return the date of days since 1970-01-01."""
    return dt.date.fromordinal(int(day) + EPOCH)


def _date_as_given(day: int, given: Any) -> Any:
    """Return a day in the type of the date that it replaces, at midnight."""
    if isinstance(given, np.datetime64):
        return _of_unit(np.array([day]), given.dtype)[0]
    date = date_of(day)
    if not isinstance(given, dt.datetime):
        return date
    return type(given)(date.year, date.month, date.day, tzinfo=given.tzinfo)


def dates(draw: Days) -> Kind:
    """Return columns of dates, with a draw for days since 1970-01-01: int64, shape (n,)."""

    def drawn(items: list[Any]) -> list[Any]:
        new = draw(np.array([day_of(x) for x in items], dtype=np.int64))
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
