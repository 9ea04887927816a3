"""Spark: columns of DataFrames and streams, and a function for SQL (extra ``fastdx[spark]``).

Spark evaluates a plan again for every action, for a task that failed, and for one that is slow.
Each time words are drawn again, and ε is spent again. So write the result once, before any shuffle,
and read the written files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdx._shared.card import KEY, card_of
from fastdx._shared.columns import privatize_arrow
from fastdx.engines._recipe import Recipe, column_names, no_text
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["privatize", "register"]


def privatize(
    df: DataFrame, columns: str | Iterable[str], *, ship: bool = True, **parameters: Any
) -> DataFrame:
    """Replace the words of columns; all others stay as they are, UNPROTECTED.

    Nothing runs before an action. Every worker process maps the index once and uses one thread.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A DataFrame or a stream.
    columns : str or iterable of str
        Columns of strings or of arrays of strings, named exactly as in ``df.columns``.
        ``user.comment`` is a field within, unless a column has this name.
    ship : bool, optional
        True (default): Spark copies the index to every machine (``SparkContext.addFile``). False:
        all machines find it at this very path.
    **parameters
        The mechanism: see ``docs/engines.md``.

    Returns
    -------
    pyspark.sql.DataFrame
        Of the same columns and types. The metadata of each replaced column hold the channel card
        under ``fastdx.channel``, that of a field within it under ``fastdx.channel.field``. A
        mechanism with a seed or without a law has no card.

    Raises
    ------
    ParameterError
        There is no such column, or there are several.
    InputTypeError
        By the task: a column is not text.
    CorruptFileError
        A worker finds another index than the one named; its task fails.
    """
    from pyspark.sql.types import StructField, StructType

    recipe, names, fields = Recipe.of(**parameters), df.columns, list(df.schema.fields)
    card = card_of(recipe.mechanism())
    places: dict[tuple[int, tuple[str, ...]], None] = {}
    for name in column_names(columns):
        first, *path = [name] if name in names else name.split(".")
        if (count := names.count(first)) != 1:
            there = ", ".join(names)
            raise ParameterError(f"columns must be of the frame: {first!r} is there {count} times "
                                 f"among {there}")  # fmt: skip
        number, key = names.index(first), ".".join((KEY, *path))
        places[number, tuple(path)] = None
        old = fields[number]
        held = {k: v for k, v in (old.metadata or {}).items() if k != key}
        held |= {} if card is None else {key: card}
        fields[number] = StructField(old.name, old.dataType, old.nullable, held)
    mechanism = _on_workers(df.sparkSession, recipe, ship)

    def private(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            new = batch
            for number, path in places:
                with no_text():
                    column = privatize_arrow(mechanism(), new.column(number), path)[0]
                field = new.schema.field(number).with_type(column.type)
                new = new.set_column(number, field, column)
            yield new

    # Spark takes points in the names of columns for fields, so it gets other names.
    return df.toDF(*(f"c{i}" for i in range(len(names)))).mapInArrow(private, StructType(fields))


def register(
    spark: SparkSession, name: str, *, ship: bool = True, returns: str = "string", **parameters: Any
) -> Any:
    """Register a function for SQL that replaces words: every call in a query draws by itself.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    name : str
        The function's name in SQL. The same function for columns is returned:
        ``function(df["text"])``.
    ship, **parameters
        As for `privatize`.
    returns : str, optional
        The type of argument and result: ``'string'`` (default) or ``'array<string>'``.
    """
    from pyspark.sql import functions

    # Spark 4.1 and later give and take Arrow.
    if hasattr(functions, "arrow_udf"):
        from pyarrow import Array as Column

        made = functions.arrow_udf
    else:
        from pandas import Series as Column

        made = functions.pandas_udf
    mechanism = _on_workers(spark, Recipe.of(**parameters), ship)

    def private(column: Any) -> Any:
        with no_text():
            return mechanism().privatize(column)

    # Spark reads the annotations, which would be strings here.
    private.__annotations__ = {"column": Column, "return": Column}
    return spark.udf.register(name, made(private, returns).asNondeterministic())


def _on_workers(spark: SparkSession, recipe: Recipe, ship: bool) -> Callable[[], Mechanism]:
    """Return what makes the mechanism in a worker; with `ship`, Spark copies the index there."""
    if not ship or recipe.index is None:
        return recipe.mechanism
    spark.sparkContext.addFile(recipe.index)
    return partial(_of_shipped, recipe, Path(recipe.index).name)


def _of_shipped(recipe: Recipe, name: str) -> Mechanism:
    from pyspark import SparkFiles

    return recipe.mechanism(SparkFiles.get(name))
