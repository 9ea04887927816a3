"""Ray Data: actors that privatise columns of datasets (extra ``fastdx[ray]``).

Ray runs a lazy dataset again for every action. Each time words are drawn again, and ε is spent
again. Write the result once, and read the written files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fastdx._shared.columns import column_names
from fastdx.engines._recipe import PrivateColumns, Recipe

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["privatize"]


def privatize(
    dataset: Dataset,
    columns: str | Iterable[str],
    *,
    concurrency: int | tuple[int, int] = 1,
    options: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Dataset:
    """Replace the words of columns of a dataset with actors; other columns are UNPROTECTED.

    Ray restarts no actor and repeats no task. If it loses an actor or its result, the execution
    fails. So no result holds two draws of a row. An actor uses one thread, and shares the mapped
    index with all other actors on its machine.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The dataset.
    columns : str or iterable of str
        Columns of text, or fields of structs: ``'user.comment'``.
    concurrency : int or (int, int), optional
        The number of actors, or their least and largest number.
    options : mapping, optional
        Other arguments of ``Dataset.map_batches``: ``{'batch_size': 512}``.
    **parameters
        The mechanism: see ``docs/engines.md``. All machines must see an index at the same path.

    Returns
    -------
    ray.data.Dataset
        A lazy dataset. An actor that finds another index than the one named fails.
    """
    from ray.data import ActorPoolStrategy

    least, most = (concurrency,) * 2 if isinstance(concurrency, int) else concurrency
    return dataset.map_batches(
        PrivateColumns,
        **(options or {}),
        fn_constructor_args=(column_names(columns), Recipe.of(**parameters)),
        batch_format="pyarrow",
        compute=ActorPoolStrategy(min_size=least, max_size=most),
        # A repeated task would cut its new draws into other blocks after some blocks were read.
        max_restarts=0,
        max_task_retries=0,
    )
