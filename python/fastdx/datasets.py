"""Hugging Face datasets: a function for ``Dataset.map`` (extra ``fastdx[datasets]``).

``map`` caches its result in a file, and reads the file when the same function meets the same data
again. For privatised text this would be silently wrong. The second release would repeat the first,
but a user who counts draws, charges a ledger or compares releases would believe in two. And a
changed policy could return old results. So a function from `privatize` never has the same
fingerprint twice.

``map`` also keeps every column that a function returns, even one that ``remove_columns=`` names. So
the functions return no column that they have not made.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

from fastdx._engines.features import FeatureColumn
from fastdx._engines.recipe import Recipe, column_names, is_child, one_thread, privatize_batch
from fastdx.exceptions import ParameterError

if TYPE_CHECKING:
    from fastdx.channel.features import TextFeatures

__all__ = ["features", "privatize"]


class _Function:
    """A function that ``map`` calls with each batch.

    `whole` returns a batch with the columns `makes`, for which it needs the columns `reads`.
    """

    def __init__(self, whole: Callable[[Any], Any], reads: list[str], makes: list[str]) -> None:
        self._whole, self._reads, self._makes = whole, reads, makes

    def __call__(self, batch: Any) -> Any:
        if isinstance(batch, Mapping):
            new = self._whole({name: batch[name] for name in self._reads if name in batch})
            return {name: new[name] for name in self._makes}
        # A table replaces all columns, so it has to have those that stay.
        new, removed = self._whole(batch), _removed_columns()
        is_arrow = hasattr(new, "column_names")
        names = new.column_names if is_arrow else list(new.columns)
        kept = [name for name in names if name in self._makes or name not in removed]
        return new.select(kept) if is_arrow else new[kept]


def _removed_columns() -> list[str]:
    """Return the ``remove_columns=`` of the ``map`` that called, which ignores them for tables."""
    ours = "datasets.arrow_dataset"
    frames = [frame for frame, _ in walk_stack(None) if frame.f_globals.get("__name__") == ours]
    for frame in frames:
        if "remove_columns" in frame.f_locals:
            return list(frame.f_locals["remove_columns"] or [])
    if frames:
        raise ParameterError("batch must be a dict for this version of datasets: with_format(None)")
    return []


class _Privatizer(_Function):
    def __init__(self, names: list[str], recipe: Recipe) -> None:
        super().__init__(
            lambda batch: privatize_batch(recipe.mechanism(), batch, names), names, names
        )
        self._names, self._recipe = names, recipe

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
        A function that returns the new columns, which ``map`` puts in their places.

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
    >>> batch["text"][0].count(","), batch["text"][1], list(batch)
    (1, None, ['text'])
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
        A function that returns the column. It draws nothing, so ``map`` may cache it.

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
    return _Function(FeatureColumn(column, of, into), [column], [into])
