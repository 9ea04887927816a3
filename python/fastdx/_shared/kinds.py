"""Columns of values in any form: single values, lists, numpy, pandas, polars, Arrow.

A column keeps its form, name, index and type, and its missing values. The module imports no library
that the caller has not imported, except pyarrow for columns that go by Arrow's C interface.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastdx.exceptions import InputTypeError


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
    """What columns of texts, of numbers and of dates differ in."""

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
