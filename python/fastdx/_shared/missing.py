"""Missing values, and columns of pandas; nothing is imported that the caller has not imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from math import isnan
from typing import Any

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
    numpy, pandas = loaded("numpy"), loaded("pandas")
    if numpy is not None and isinstance(value, (numpy.datetime64, numpy.floating)):
        return bool(numpy.isnan(value))
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def pandas_column(column: Any, pandas: Any, drawn: Callable[[Any], Any]) -> Any:
    """Draw replacements for a pandas column through an Arrow or numpy array, or a list.

    Categories, and the fill value of a sparse column, are values: new ones take their place.
    """
    dtype, values = column.dtype, column.array
    if isinstance(dtype, pandas.CategoricalDtype):
        new = pandas.Categorical(drawn(column.astype(object).tolist()), ordered=dtype.ordered)
        dtype = new.dtype
    elif isinstance(dtype, pandas.SparseDtype):
        dtype = dtype.subtype
        new = drawn(values.to_dense())
    elif isinstance(dtype, pandas.DatetimeTZDtype):
        local = pandas.DatetimeIndex(column).tz_localize(None).to_numpy()
        new = pandas.DatetimeIndex(drawn(local)).tz_localize(
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
        new = dtype.__from_arrow__(drawn(old))
    else:
        new = drawn(column.to_numpy())
    if isinstance(column, pandas.Index):
        return pandas.Index(new, name=column.name, dtype=dtype)
    return pandas.Series(new, index=column.index, name=column.name, dtype=dtype)
