"""Checks of arguments: each error names the argument, what it must be, and what was given."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from fastdx.exceptions import InputTypeError, ParameterError


def check_type(name: str, value: object, kind: type) -> None:
    """Refuse an object of another class."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise InputTypeError(
            f"{name} must be {article} {kind.__name__}, not {type(value).__name__}"
        )


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse what is not one of some words."""
    if value not in (known := tuple(allowed)):
        raise ParameterError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def at_least(name: str, value: float, least: float) -> None:
    """Refuse a number below the least one."""
    if not value >= least:
        raise ParameterError(f"{name} must be at least {least}, got {value}")


def inside(name: str, value: float) -> float:
    """Return the number; refuse one that is not above 0 and below 1."""
    if not 0 < value < 1:
        raise ParameterError(f"{name} must be between 0 and 1, got {value}")
    return float(value)


def share(name: str, value: float) -> float:
    """Return the number; refuse one that is not above 0, or is above 1."""
    if not 0 < value <= 1:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value}")
    return float(value)


def positive(name: str, value: float) -> float:
    """Return the number; refuse one that is not finite and above 0."""
    if not (isfinite(value) and value > 0):
        raise ParameterError(f"{name} must be finite and positive, got {value}")
    return float(value)


def between(name: str, value: float, low: float, high: float) -> float:
    """Return the number; refuse one outside [low, high]."""
    if not low <= value <= high:
        raise ParameterError(f"{name} must be from {low:g} to {high:g}, got {value}")
    return float(value)


def counted(name: str, value: float, low: int, high: int) -> int:
    """Return the number; refuse one that is no whole number from low to high."""
    if not low <= value <= high or value != int(value):
        raise ParameterError(f"{name} must be a whole number from {low} to {high}, got {value}")
    return int(value)
