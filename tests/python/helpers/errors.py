"""Errors: what is refused, by a table; and all that an error came from."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

Row: TypeAlias = tuple[type[Exception], str, Callable[[], object]]


def refused(*rows: Row) -> None:
    """Make each call, which raises the error of its row with a message that matches."""
    for error, message, call in rows:
        with pytest.raises(error, match=message or None):
            call()


def origins(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, the one that it came from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
