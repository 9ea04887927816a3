"""A picklable function with which engines privatise batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fastdx._engines.recipe import Recipe, no_text
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

__all__ = ["PrivateColumns", "column_names", "privatize_values"]


def column_names(columns: str | Iterable[str]) -> list[str]:
    """Return the names of columns as a list that is not empty."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ParameterError("columns must be at least one, got none")
    return names


def privatize_values(mechanism: Mechanism, values: Any) -> Any:
    """Privatise a column; a numpy array stays a numpy array."""
    if not isinstance(values, np.ndarray):
        return mechanism.privatize(values)
    new = np.empty(values.shape, dtype=object)
    new[...] = mechanism.privatize(values.tolist())
    return new


class PrivateColumns:
    """Replaces the words of columns of batches: mappings of names to lists or arrays, or frames.

    Parameters
    ----------
    columns : str or iterable of str
        Columns of text; in frames of Arrow and polars also fields of structs.
    recipe : Recipe
        The mechanism, which each process makes once.
    """

    def __init__(self, columns: str | Iterable[str], recipe: Recipe) -> None:
        """Store the parameters."""
        self.names, self.recipe = column_names(columns), recipe

    def __call__(self, batch: Any) -> Any:
        """Return the batch, in its form, with the new columns in their places."""
        mechanism = self.recipe.mechanism()
        with no_text():
            if not isinstance(batch, Mapping):
                return mechanism.privatize_frame(batch, self.names)
            new = dict(batch.items())
            for name in self.names:
                if name not in new:
                    raise ParameterError(f"columns must be of the batch, which has no {name!r}")
                new[name] = privatize_values(mechanism, new[name])
            return new
