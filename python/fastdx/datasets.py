"""Hugging Face datasets: a function for ``Dataset.map`` (extra ``fastdx[datasets]``).

``map`` caches its result in a file, and reads the file when the same function meets the same data
again. For privatised text this would be silently wrong. The second release would repeat the first,
but a user who counts draws, charges a ledger or compares releases would believe in two. And a
changed policy could return old results. So a function from `privatize` never has the same
fingerprint twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

from fastdx._engines.features import FeatureColumn
from fastdx._engines.recipe import Recipe, column_names, is_child, one_thread, privatize_batch

if TYPE_CHECKING:
    from fastdx.channel.features import TextFeatures

__all__ = ["features", "privatize"]


class _Privatizer:
    """The function that ``map`` calls with each batch."""

    def __init__(self, names: list[str], recipe: Recipe) -> None:
        self._names, self._recipe = names, recipe

    def __call__(self, batch: Any) -> Any:
        return privatize_batch(self._recipe.mechanism(), batch, self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        # The fingerprint is a hash of the pickled function; the random argument changes it.
        return _copied, (self._names, self._recipe, secrets.token_hex(16))


def _copied(names: list[str], recipe: Recipe, _fresh: str) -> _Privatizer:
    """Make the function again; a process of ``num_proc=`` then uses one thread."""
    if is_child():
        one_thread()
    return _Privatizer(names, recipe)


def privatize(
    columns: str | Iterable[str],
    *,
    epsilon: float | None = None,
    index: str | PathLike[str] | None = None,
    mechanism: str = "tem",
    **parameters: Any,
) -> Any:
    """Return a function for ``ds.map(…, batched=True, num_proc=…)`` that replaces words.

    Parameters
    ----------
    columns : str or iterable of str
        Columns of text or of lists of texts; all others stay unchanged, UNPROTECTED. In a dataset
        of format 'arrow' also nested fields: ``'user.comment'``.
    epsilon : float, optional
        ε per unit of distance; by default ``Tem.recommended()`` is used.
    index : str or os.PathLike, optional
        A file from ``Tem.save`` or ``fastdx index build``; by default the built-in words.
    mechanism : str, optional
        A name in `fastdx.mechanisms.MECHANISMS`.
    **parameters
        The mechanism's other parameters.

    Returns
    -------
    callable
        A function that returns a batch with the new columns in their places.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.
    MissingFileError, CorruptFileError
        The index cannot be read.

    Examples
    --------
    >>> from fastdx.datasets import privatize
    >>> private = privatize("text")
    >>> batch = private({"text": ["A cup of tea, please.", None], "stars": [5, 1]})
    >>> batch["text"][0].count(","), batch["text"][1], batch["stars"]
    (1, None, [5, 1])
    """
    return _Privatizer(column_names(columns), Recipe.of(epsilon, mechanism, index, **parameters))


def features(column: str, of: TextFeatures, *, into: str = "features") -> Any:
    """Return a function for ``ds.map(…, batched=True, num_proc=…)`` that adds features of releases.

    Parameters
    ----------
    column : str
        A column of released texts.
    of : TextFeatures
        The features to compute, which must be dense: ``channel.features.TextFeatures(channel)``.
    into : str, optional
        The name of the new column, with a list of floats per row.

    Returns
    -------
    callable
        A function that adds the column to a batch. It draws nothing, so ``map`` may cache it.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel
    >>> from fastdx.channel.features import TextFeatures
    >>> from fastdx.datasets import features
    >>> e = Embedding(["tea", "law"], [[0.0], [9.0]])
    >>> batch = features("text", TextFeatures(Channel.of(Tem(e, 2.0))))({"text": ["tea", None]})
    >>> len(batch["features"]), batch["features"][1]
    (2, [0.0])
    """
    return FeatureColumn(column, of, into)
