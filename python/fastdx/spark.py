"""Spark: columns of DataFrames and streams, and a function for SQL (extra ``fastdx[spark]``).

Spark evaluates a plan again for every action, for a task that failed, and for one that is slow.
Each time words are drawn again, and ε is spent again. So write the result once, before any shuffle,
and read the written files: `checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fastdx._engines.batches import column_names
from fastdx._engines.recipe import Recipe, no_text
from fastdx._engines.spark import (
    find_text,
    on_workers,
    privatize_fields,
    scalar_function,
    schema_with_card,
    wide_above_draw,
)
from fastdx._shared.card import card_of
from fastdx.exceptions import InputTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["checkpoint", "privatize", "register"]


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
        Columns of strings or of arrays of strings, named as in Spark: ``user.comment`` is a field
        within, `` `a.b` `` a column whose name has a point; ``spark.sql.caseSensitive`` holds.
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
        A parameter outside its domain; no such column, or several.
    InputTypeError
        A column that is not text.
    MissingFileError, CorruptFileError
        The index. Where a worker finds another file, its task fails.
    """
    recipe = Recipe.of(**parameters)
    places = list(dict.fromkeys(find_text(df, name) for name in column_names(columns)))
    schema = schema_with_card(df.schema, places, card_of(recipe.mechanism()))
    mechanism = on_workers(df.sparkSession, recipe, ship)

    # `checkpoint` finds this function in plans by its name.
    def fastdx_privatize(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            yield privatize_fields(mechanism(), batch, places)

    # Spark takes points in the names of columns for fields, so it gets other names.
    plain = df.toDF(*(f"c{i}" for i in range(len(df.columns))))
    return plain.mapInArrow(fastdx_privatize, schema)


def register(
    spark: SparkSession, name: str, *, ship: bool = True, returns: str = "string", **parameters: Any
) -> Any:
    """Register a function for SQL that replaces words: every call in a query draws by itself.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    name : str
        The function's name in SQL.
    ship, **parameters
        As for `privatize`.
    returns : str, optional
        The type of argument and result: ``'string'`` (default) or ``'array<string>'``.

    Returns
    -------
    function
        The same for columns: ``function(df["text"])``.
    """
    mechanism = on_workers(spark, Recipe.of(**parameters), ship)

    def private(column: Any) -> Any:
        with no_text():
            return mechanism().privatize(column)

    return spark.udf.register(name, scalar_function(private, returns))


def checkpoint(df: DataFrame, path: str, format: str = "parquet", **options: Any) -> DataFrame:
    """Write a DataFrame once, and return what was written: one draw for all that reads it.

    Where Spark loses a part of a shuffle, it computes only that part again, and one result would
    hold rows of two draws. So nothing that may shuffle is allowed between the draws and the files:
    shuffle, join and sort what is returned.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        What `privatize` returned, or a query with a function of `register`; columns selected, rows
        filtered.
    path : str
        A folder that does not exist yet. Only the committed files in it may be given away: a task
        that ran twice drew twice, and Spark deletes what the lost attempts wrote.
    format : str, optional
        Of the files. Its writer must not shuffle either.
    **options
        For Spark's writer and reader.

    Raises
    ------
    ParameterError
        The plan of `df` may shuffle rows after words were drawn.
    InputTypeError
        A stream: ``writeStream`` writes each of its rows once. A DataFrame of Spark Connect, which
        does not show its plan.
    """
    if df.isStreaming:
        raise InputTypeError("df is a stream: write it by df.writeStream")
    java = getattr(df, "_jdf", None)
    if java is None:
        raise InputTypeError(
            "df is of Spark Connect, which does not show its plan: write what privatize returned "
            "by df.write, and read that"
        )
    if (wide := wide_above_draw(java.queryExecution().executedPlan())) is not None:
        raise ParameterError(
            f"df must not be shuffled once words are drawn, and its plan has {wide!r} above the "
            "draws: checkpoint what privatize returned, then do the rest with what was written"
        )
    df.write.format(format).options(**options).mode("errorifexists").save(path)
    return df.sparkSession.read.format(format).options(**options).schema(df.schema).load(path)
