"""Prints numbers as people read them: a shown bound is never on the wrong side of the true one.

JSON, pickles and Specs keep every digit; `src/guarantee/proved/rounded.rs` prints guarantees.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

__all__ = ["down", "up"]


def up(x: float, digits: int = 4) -> str:
    """Return a number in the form ``%g`` with at most `digits` digits, rounded up.

    >>> up(1.0004, 4), up(2.5, 4), up(10.7991, 4)
    ('1.001', '2.5', '10.8')
    """
    return _shown(x, digits, ROUND_CEILING)


def down(x: float, digits: int = 4) -> str:
    """Return a number in the form ``%g`` with at most `digits` digits, rounded down.

    >>> down(0.99996, 4), down(2.5, 4)
    ('0.9999', '2.5')
    """
    return _shown(x, digits, ROUND_FLOOR)


def _shown(x: float, digits: int, rounding: str) -> str:
    if not math.isfinite(x) or x == float(f"{x:.{digits}g}"):
        return f"{x:.{digits}g}"
    decimal = Context(prec=digits, rounding=rounding).create_decimal_from_float(float(x))
    return f"{float(decimal):.{digits}g}"
