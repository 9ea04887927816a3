"""Ray Data: actors that privatise columns of datasets (extra ``fastdx[ray]``).

Ray runs a lazy dataset again for every action. By default it also repeats a task whose actor or
result is lost. Each time words are drawn again, and ε is spent again. `privatize` forbids repeated
tasks. Write the result once, and read the written files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

from fastdx._engines.features import FeatureColumn
from fastdx._engines.recipe import Recipe, column_names, one_thread, privatize_batch

if TYPE_CHECKING:
    from ray.data import Dataset

    from fastdx.channel.features import TextFeatures

__all__ = ["Privatizer", "features", "privatize"]


class Privatizer:
    """Replaces the words of columns of batches; ``Dataset.map_batches`` makes actors of it.

    An actor uses one thread. It shares the mapped index with all other actors on its machine. Call
    ``map_batches`` with ``max_restarts=0, max_task_retries=0``. Otherwise Ray repeats a task whose
    actor died, and one result may hold rows of both draws.

    Parameters
    ----------
    columns : str or iterable of str
        Columns of text. In batches of format 'pyarrow' also nested fields: ``'user.comment'``.
    epsilon : float, optional
        ε per unit of distance; by default ``Tem.recommended()`` is used.
    index : str or os.PathLike, optional
        A file from ``Tem.save`` or ``fastdx index build``, at a path that all machines see; by
        default the built-in words.
    mechanism : str, optional
        A name in `fastdx.mechanisms.MECHANISMS`.
    **parameters
        The mechanism's other parameters.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.
    MissingFileError, CorruptFileError
        The index cannot be read.

    Examples
    --------
    >>> from fastdx.ray import Privatizer
    >>> private = Privatizer("text")
    >>> batch = private({"text": ["A cup of tea, please.", None], "stars": [5, 1]})
    >>> batch["text"][0].count(","), batch["text"][1], batch["stars"]
    (1, None, [5, 1])
    """

    def __init__(
        self,
        columns: str | Iterable[str],
        *,
        epsilon: float | None = None,
        index: str | PathLike[str] | None = None,
        mechanism: str = "tem",
        **parameters: Any,
    ) -> None:
        """Check the parameters."""
        self._start(column_names(columns), Recipe.of(epsilon, mechanism, index, **parameters))

    def _start(self, names: list[str], recipe: Recipe) -> None:
        self._names, self._recipe = names, recipe
        ray = sys.modules.get("ray")
        if ray is not None and ray.is_initialized() and ray.get_runtime_context().get_actor_id():
            one_thread()
        recipe.mechanism()

    def __call__(self, batch: Any) -> Any:
        """Replace the words of a batch.

        Parameters
        ----------
        batch : dict of str to array, pyarrow.Table or pandas.DataFrame
            A batch in any of Ray's formats.

        Returns
        -------
        dict, pyarrow.Table or pandas.DataFrame
            The batch with the new columns in their places; all other columns are UNPROTECTED.
        """
        return privatize_batch(self._recipe.mechanism(), batch, self._names)


class _Actor(Privatizer):
    """An actor in one of Ray's processes; the driver has already checked its recipe."""

    def __init__(self, names: list[str], recipe: Recipe) -> None:
        self._start(names, recipe)


def privatize(
    dataset: Dataset,
    columns: str | Iterable[str],
    *,
    epsilon: float | None = None,
    index: str | PathLike[str] | None = None,
    mechanism: str = "tem",
    concurrency: int | tuple[int, int] = 1,
    **parameters: Any,
) -> Dataset:
    """Replace the words of columns of a dataset with actors; other columns are UNPROTECTED.

    Unlike ``map_batches(Privatizer, …)``, this function checks all parameters on the driver, and
    every actor checks that its index is the same file. Ray restarts no actor and repeats no task.
    If it loses an actor or its result, the execution fails. So no result holds two draws of a row.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The dataset.
    columns, epsilon, index, mechanism, **parameters
        As for `Privatizer`.
    concurrency : int or (int, int), optional
        The number of actors, or their least and largest number.

    Returns
    -------
    ray.data.Dataset
        A lazy dataset.
    """
    from ray.data import ActorPoolStrategy

    recipe = Recipe.of(epsilon, mechanism, index, **parameters)
    least, most = (concurrency,) * 2 if isinstance(concurrency, int) else concurrency
    return dataset.map_batches(
        _Actor,
        fn_constructor_args=(column_names(columns), recipe),
        batch_format="pyarrow",
        compute=ActorPoolStrategy(min_size=least, max_size=most),
        # A repeated task would cut its new draws into other blocks after some blocks were read.
        max_restarts=0,
        max_task_retries=0,
    )


def features(dataset: Dataset, column: str, of: TextFeatures, *, into: str = "features") -> Dataset:
    """Add a column of features of released texts. It draws nothing, so Ray may repeat tasks.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The dataset.
    column, of, into
        As for `fastdx.datasets.features`.
    """
    return dataset.map_batches(FeatureColumn(column, of, into), batch_format="pyarrow")
