"""Hugging Face datasets: a function for ``Dataset.map`` (extra ``fastdx[datasets]``).

``map`` caches its result in a file, and reads the file when the same function meets the same data
again. For privatised text this would be silently wrong. The second release would repeat the first,
but a user who counts draws, charges a ledger or compares releases would believe in two. And a
changed policy could return old results. So a function from `privatize` never has the same
fingerprint twice.

``map`` also keeps every column that a function returns, even one that ``remove_columns=`` names. So
the function returns no column that it has not made.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from fastdx.engines._recipe import PrivateColumns, Recipe
from fastdx.exceptions import ParameterError

__all__ = ["privatize"]


class _Private(PrivateColumns):
    """A function that ``map`` calls with each batch."""

    def __call__(self, batch: Any) -> Any:
        if not isinstance(batch, Mapping):
            # A table replaces all columns, also those that are to be removed.
            raise ParameterError("batch must be a dict, not a table: map a with_format(None)")
        return super().__call__({name: batch[name] for name in self.names if name in batch})

    def __reduce__(self) -> tuple[Any, ...]:
        # The fingerprint is a hash of the pickled function; the random mark changes it.
        return _Private, (self.names, self.recipe), {"mark": secrets.token_hex(16)}


def privatize(columns: str | Iterable[str], **parameters: Any) -> Any:
    """Return a function for ``ds.map(…, batched=True, num_proc=…)`` that makes new columns.

    Parameters
    ----------
    columns : str or iterable of str
        Columns of text or of lists of texts; all others stay unchanged, UNPROTECTED. Fields within
        become columns by ``ds.flatten()``: ``'user.comment'``. The dataset is of the format None,
        'numpy' or another whose batches are dicts.
    **parameters
        The mechanism: see ``docs/engines.md``.
    """
    return _Private(columns, Recipe.of(**parameters))
