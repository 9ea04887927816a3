"""Ray Data: columns of datasets, by actors (extra ``fastdx[ray]``).

Ray runs a lazy dataset for every action, and by default a task again whose actor or outcome it has
lost: words are then drawn again, and ε is spent again. `privatize` forbids the second. Write the
outcome once and read what was written.
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
    """Replaces the words of columns of batches: for ``Dataset.map_batches``, which makes actors.

    An actor works on one thread and maps the index once, with all other actors on its machine.
    Call ``map_batches`` with ``max_restarts=0, max_task_retries=0``: by default Ray runs a task of
    an actor that died again, and one outcome may hold rows of both draws.

    Parameters
    ----------
    columns : str or iterable of str
        Columns of text. In batches of the format 'pyarrow' also fields within: ``'user.comment'``.
    epsilon : float, optional
        ε per unit of distance. Without it, ``Tem.recommended()``.
    index : str or os.PathLike, optional
        A file that ``Tem.save`` or ``fastdx index build`` wrote, at a path that all machines see;
        the built-in words if left out.
    mechanism : str, optional
        A name in `fastdx.mechanisms.MECHANISMS`.
    **parameters
        The mechanism's other parameters.

    Raises
    ------
    ParameterError
        A parameter outside its domain.
    MissingFileError, CorruptFileError
        The index.

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
            Any of Ray's batch formats.

        Returns
        -------
        dict, pyarrow.Table or pandas.DataFrame
            As given, with the columns in their places; all others are UNPROTECTED.
        """
        return privatize_batch(self._recipe.mechanism(), batch, self._names)


class _Actor(Privatizer):
    """One of Ray's processes: its recipe was checked where it was written."""

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
    """Replace the words of columns of a dataset by actors; all others are UNPROTECTED.

    Unlike ``map_batches(Privatizer, …)`` it checks everything here, and every actor that the index
    it finds is the one that was named here. No actor is started again, and no task: where Ray loses
    one, or what it drew, the execution fails, so that no outcome holds two draws of a row.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The dataset.
    columns, epsilon, index, mechanism, **parameters
        As for `Privatizer`.
    concurrency : int or (int, int), optional
        How many actors, or at least and at most how many.

    Returns
    -------
    ray.data.Dataset
        Lazy, as Ray's are.
    """
    from ray.data import ActorPoolStrategy

    recipe = Recipe.of(epsilon, mechanism, index, **parameters)
    least, most = (concurrency,) * 2 if isinstance(concurrency, int) else concurrency
    return dataset.map_batches(
        _Actor,
        fn_constructor_args=(column_names(columns), recipe),
        batch_format="pyarrow",
        compute=ActorPoolStrategy(min_size=least, max_size=most),
        # A task that runs again cuts its new draws into other blocks, of which some have been read.
        max_restarts=0,
        max_task_retries=0,
    )


def features(dataset: Dataset, column: str, of: TextFeatures, *, into: str = "features") -> Dataset:
    """Add a column of features of released texts; it draws nothing, so tasks may run again.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The dataset.
    column, of, into
        As for `fastdx.datasets.features`.
    """
    return dataset.map_batches(FeatureColumn(column, of, into), batch_format="pyarrow")
