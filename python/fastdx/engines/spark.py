"""Spark: columns of DataFrames and streams, and a function for SQL (extra ``fastdx[spark]``).

Spark evaluates a plan again for every action, for a task that failed, and for one that is slow.
Each time words are drawn again, and ε is spent again. So write the result once, before any shuffle,
and read the written files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdx._shared.card import KEY, card_of
from fastdx._shared.columns import column_names, drawn_columns, paths_of
from fastdx.engines._recipe import Recipe, no_text

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["privatize", "register"]


def privatize(df: DataFrame, columns: str | Iterable[str], **parameters: Any) -> DataFrame:
    """Replace the words of columns; all others stay as they are, UNPROTECTED.

    Nothing runs before an action. Every worker process maps the index once and uses one thread.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A DataFrame or a stream.
    columns : str or iterable of str
        Columns of strings or of arrays of strings, named exactly as in ``df.columns``.
        ``user.comment`` is a field within, unless a column has this name.
    **parameters
        The mechanism: see ``docs/engines.md``. Spark copies the index to every machine
        (``SparkContext.addFile``).

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
    InputTypeError, CorruptFileError
        By the task: a column is not text; the index is another one than the one named.
    """
    from pyspark.sql.types import StructField, StructType

    recipe, names, fields = Recipe.of(**parameters), df.columns, list(df.schema.fields)
    card, here = card_of(recipe.mechanism()), _on_workers(df.sparkSession, recipe)
    places = paths_of(column_names(columns), names)
    for at, path in places:
        old, key = fields[at], ".".join((KEY, *path))
        held = {k: v for k, v in {**old.metadata, key: card}.items() if v is not None}
        fields[at] = StructField(old.name, old.dataType, old.nullable, held)

    def private(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            with no_text():
                new = drawn_columns(here().mechanism(), batch, places)
            yield new

    # Spark takes points in the names of columns for fields, so it gets other names.
    return df.toDF(*(f"c{i}" for i in range(len(names)))).mapInArrow(private, StructType(fields))


def register(spark: SparkSession, name: str, *, returns: str = "string", **parameters: Any) -> Any:
    """Register a function for SQL that replaces words: every call in a query draws by itself.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    name : str
        The function's name in SQL. The same function for columns is returned:
        ``function(df["text"])``.
    returns : str, optional
        The type of argument and result: ``'string'`` (default) or ``'array<string>'``.
    **parameters
        As for `privatize`.
    """
    from pyspark.sql import functions

    # Spark 4.1 and later give and take Arrow.
    arrow = hasattr(functions, "arrow_udf")
    made = functions.arrow_udf if arrow else functions.pandas_udf
    kind = import_module("pyarrow").Array if arrow else import_module("pandas").Series
    here = _on_workers(spark, Recipe.of(**parameters))

    def private(column: Any) -> Any:
        return here().privatize(column)

    # Spark reads the annotations, which would be strings here.
    private.__annotations__ = {"column": kind, "return": kind}
    return spark.udf.register(name, made(private, returns).asNondeterministic())


def _on_workers(spark: SparkSession, recipe: Recipe) -> Callable[[], Recipe]:
    """Return what gives the recipe in a worker, where Spark copies the index to."""
    if (index := recipe.index) is None:
        return lambda: recipe
    spark.sparkContext.addFile(index)

    def shipped() -> Recipe:
        from pyspark import SparkFiles

        return replace(recipe, index=SparkFiles.get(Path(index).name))

    return shipped
