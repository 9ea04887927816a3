"""A picklable function with which engines add features of released texts to batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastdx._engines.recipe import no_text
from fastdx.channel.features import TextFeatures
from fastdx.exceptions import ParameterError

__all__ = ["FeatureColumn"]


class FeatureColumn:
    """Adds a column of features to batches. It is pickled together with its table.

    Parameters
    ----------
    column : str
        A column of released texts.
    features : TextFeatures
        The features to compute, which must be dense.
    into : str, optional
        The name of the new column, with a list of floats per row.
    """

    def __init__(self, column: str, features: TextFeatures, into: str = "features") -> None:
        """Store the parameters; refuse sparse features."""
        if features.sparse:
            raise ParameterError("features must be dense here: kind='means', or directions=")
        self.column, self.features, self.into = column, features, into

    def __call__(self, batch: Any) -> Any:
        """Return the batch with the column: a mapping of lists or arrays, or a frame."""
        mapping = isinstance(batch, Mapping)
        names = list(batch) if mapping else list(getattr(batch, "column_names", batch))
        if self.column not in names:
            raise ParameterError(f"column must be of the batch, which has no {self.column!r}")
        given = batch[self.column]
        texts = given.to_pylist() if hasattr(given, "to_pylist") else list(given)
        with no_text():
            rows = self.features([t if isinstance(t, str) else None for t in texts])
        if mapping:
            array = isinstance(given, np.ndarray)
            return {**batch, self.into: rows if array else rows.tolist()}
        if hasattr(batch, "append_column"):
            import pyarrow

            return batch.append_column(self.into, pyarrow.array(rows.tolist()))
        return batch.assign(**{self.into: rows.tolist()})
