"""Missing values in columns; nothing is imported that the caller has not imported."""

from __future__ import annotations

import sys
from decimal import Decimal
from math import isnan
from typing import Any


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
