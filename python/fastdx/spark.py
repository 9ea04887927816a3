"""Spark: columns of DataFrames and streams, and a function for SQL (extra ``fastdx[spark]``).

Spark evaluates a plan as often as it likes: for every action, for a task that failed, for one
that is slow. Each time words are drawn again, and ε is spent again. So write the outcome once,
before any shuffle, and read what was written: `checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from fastdx._engines.features import FeatureColumn
from fastdx._engines.recipe import Recipe, column_names, no_text
from fastdx._engines.spark import (
    card_in,
    find_text,
    privatize_fields,
    scalar_function,
    schema_with_card,
    ship_index,
    wide_above_draw,
    worker,
)
from fastdx._shared.card import card_of
from fastdx.exceptions import InputTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from fastdx.channel.features import TextFeatures

__all__ = ["channel_card", "checkpoint", "features", "privatize", "register"]


def privatize(
    df: DataFrame,
    columns: str | Iterable[str],
    *,
    epsilon: float | None = None,
    index: str | PathLike[str] | None = None,
    ship: bool = True,
    mechanism: str = "tem",
    **parameters: Any,
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
    epsilon : float, optional
        ε per unit of distance. Without it, ``Tem.recommended()``.
    index : str or os.PathLike, optional
        A file that ``Tem.save`` or ``fastdx index build`` wrote; the built-in words if left out.
    ship : bool, optional
        True (default): Spark copies the index to every machine (``SparkContext.addFile``). False:
        all machines find it at this very path.
    mechanism : str, optional
        A name in `fastdx.mechanisms.MECHANISMS`.
    **parameters
        The mechanism's other parameters.

    Returns
    -------
    pyspark.sql.DataFrame
        Of the same columns and types. The metadata of replaced columns hold the channel card, if
        the mechanism has one: see `channel_card`.

    Raises
    ------
    ParameterError
        A parameter outside its domain; no such column, or several.
    InputTypeError
        A column that is not text.
    MissingFileError, CorruptFileError
        The index. Where a worker finds another file, its task fails.
    """
    recipe = Recipe.of(epsilon, mechanism, index, **parameters)
    found = [find_text(df.schema, name, _exact(df)) for name in column_names(columns)]
    places = list(dict.fromkeys(found))
    shipped = ship_index(df.sparkSession, recipe) if ship else None
    card = card_of(recipe.mechanism())
    schema = schema_with_card(df.schema, places, card)

    # `checkpoint` finds this function in plans by its name.
    def fastdx_privatize(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        made = worker(recipe, shipped)
        for batch in batches:
            yield privatize_fields(made, batch, places)

    # Spark takes points in the names of columns for fields, so it gets other names.
    plain = df.toDF(*(f"c{i}" for i in range(len(df.columns))))
    return plain.mapInArrow(fastdx_privatize, schema)


def _exact(df: DataFrame) -> bool:
    """Whether capital letters in the names of columns matter."""
    return str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"


def channel_card(frame: DataFrame | StructType, column: str) -> str:
    """Return the channel card that the metadata of a column of released texts hold.

    `privatize` puts it there. Selections, filters, `checkpoint` and files of Parquet and ORC keep
    it. Files of JSON and CSV lose it, and so do functions of a column, the choice of a field within
    it, and the functions of `register`.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame or pyspark.sql.types.StructType
        A DataFrame or its schema.
    column : str
        The column, or the field within it, as `privatize` takes its name.

    Returns
    -------
    str
        What ``fastdx.channel.Channel.load`` takes.

    Raises
    ------
    ParameterError
        No such column, or one without a card.
    InputTypeError
        A column that is not text.

    Examples
    --------
    >>> from pyspark.sql.types import StringType, StructField, StructType
    >>> from fastdx.spark import channel_card
    >>> text = StructField("text", StringType(), metadata={"fastdx.channel": '{"card": 1}'})
    >>> channel_card(StructType([text]), "text")
    '{"card": 1}'
    """
    schema, exact = (frame.schema, _exact(frame)) if hasattr(frame, "schema") else (frame, False)
    return card_in(schema, column, exact)


def register(
    spark: SparkSession,
    name: str,
    *,
    epsilon: float | None = None,
    index: str | PathLike[str] | None = None,
    ship: bool = True,
    returns: str = "string",
    mechanism: str = "tem",
    **parameters: Any,
) -> Any:
    """Register a function for SQL that replaces words: every call in a query draws by itself.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    name : str
        What SQL calls it.
    epsilon, index, ship, mechanism, **parameters
        As for `privatize`.
    returns : str, optional
        What it takes and gives: ``'string'`` (default) or ``'array<string>'``.

    Returns
    -------
    function
        The same for columns: ``function(df["text"])``.
    """
    recipe = Recipe.of(epsilon, mechanism, index, **parameters)
    shipped = ship_index(spark, recipe) if ship else None

    def private(column: Any) -> Any:
        with no_text():
            return worker(recipe, shipped).privatize(column)

    return spark.udf.register(name, scalar_function(private, returns))


def checkpoint(df: DataFrame, path: str, format: str = "parquet", **options: Any) -> DataFrame:
    """Write a DataFrame once, and return what was written: one draw for all that reads it.

    Every row of `df` is written with one draw. Where Spark loses a part of a shuffle, it computes
    only that part again, and one outcome would hold rows of two draws. So nothing that may shuffle
    is allowed between the draws and the files: shuffle, join and sort what is returned.

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


def features(df: DataFrame, column: str, of: TextFeatures, *, into: str = "features") -> DataFrame:
    """Add a column of features of released texts; it draws nothing, so tasks may run again.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A DataFrame or a stream.
    column : str
        A column of strings, at the top.
    of, into
        As for `fastdx.datasets.features`; the new column is ``array<double>``.
    """
    from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

    add = FeatureColumn(column, of, into)
    schema = StructType([*df.schema.fields, StructField(into, ArrayType(DoubleType()))])

    def fastdx_features(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        for batch in batches:
            yield from add(pyarrow.Table.from_batches([batch])).to_batches()

    return df.mapInArrow(fastdx_features, schema)
