"""Spark: columns of DataFrames and streams, and a function for SQL (extra ``fastdx[spark]``).

Spark evaluates a plan as often as it likes: for every action, for a task that failed, for one
that is slow. Each time words are drawn again, and ε is spent again. So write the outcome once and
read what was written: `checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdx._worker import Recipe, column_names, no_text, one_thread, privatize_batch
from fastdx.exceptions import InputTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["checkpoint", "privatize", "register"]


def privatize(
    df: DataFrame,
    columns: str | Iterable[str],
    *,
    epsilon: float,
    index: str | PathLike[str] | None = None,
    ship: bool = True,
    mechanism: str = "tem",
    **parameters: Any,
) -> DataFrame:
    """Replace the words of columns; all others stay as they are, UNPROTECTED.

    Nothing runs and nothing is fetched to the driver before an action. Every worker process maps
    the index once and works on one thread, since Spark runs as many of them as it has cores.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A DataFrame or a stream.
    columns : str or iterable of str
        Columns of strings or of arrays of strings; ``'user.comment'`` is a field within.
    epsilon : float
        ε per unit of distance.
    index : str or os.PathLike, optional
        A file that ``Tem.save`` or ``fastdx index build`` wrote; the built-in words if left out.
    ship : bool, optional
        True (default): Spark copies the index to every machine (``SparkContext.addFile``). False:
        all machines find it at this very path.
    mechanism : str, optional
        A name in `fastdx.MECHANISMS`.
    **parameters
        The mechanism's other parameters.

    Returns
    -------
    pyspark.sql.DataFrame
        Of the same schema.

    Raises
    ------
    ParameterError
        A parameter outside its domain, or no such column.
    InputTypeError
        A column that is not text.
    MissingFileError, CorruptFileError
        The index. Where a worker finds another file, its task fails.
    """
    recipe = Recipe.of(epsilon, mechanism, index, **parameters)
    names = column_names(columns)
    for name in names:
        _check(df.schema, name)
    shipped = _ship(df.sparkSession, recipe) if ship else None

    def task(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        made = _worker(recipe, shipped)
        for batch in batches:
            yield privatize_batch(made, batch.rename_columns(columns_of), names)

    # Spark takes points in the names of columns for fields, so it gets other names.
    columns_of = df.columns
    plain = df.toDF(*(f"c{i}" for i in range(len(columns_of))))
    return plain.mapInArrow(task, df.schema)


def register(
    spark: SparkSession,
    name: str,
    *,
    epsilon: float,
    index: str | PathLike[str] | None = None,
    ship: bool = True,
    returns: str = "string",
    mechanism: str = "tem",
    **parameters: Any,
) -> Any:
    """Register a function for SQL that replaces the words of its argument.

    Spark takes it as not deterministic: every call that a query writes down is a draw of its own.

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
    from pyspark.sql import functions

    recipe = Recipe.of(epsilon, mechanism, index, **parameters)
    shipped = _ship(spark, recipe) if ship else None

    def private(column: Any) -> Any:
        with no_text():
            return _worker(recipe, shipped).privatize(column)

    if hasattr(functions, "arrow_udf"):  # Spark 4.1 and later
        from pyarrow import Array as Column

        made = functions.arrow_udf
    else:
        from pandas import Series as Column

        made = functions.pandas_udf
    # Spark reads the annotations, which would be strings here.
    private.__annotations__ = {"column": Column, "return": Column}
    return spark.udf.register(name, made(private, returns).asNondeterministic())


def checkpoint(df: DataFrame, path: str, format: str = "parquet", **options: Any) -> DataFrame:
    """Write a DataFrame once, and return what was written: one draw for all that reads it.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        What `privatize` returned, or what was made of it.
    path : str
        A folder that does not exist yet. Only the committed files in it may be given away: a task
        that ran twice drew twice, and Spark deletes what the lost attempts wrote.
    format : str, optional
        Of the files.
    **options
        For Spark's writer and reader.

    Raises
    ------
    InputTypeError
        A stream: ``writeStream`` writes each of its rows once.
    """
    if df.isStreaming:
        raise InputTypeError("df is a stream: write it by df.writeStream")
    df.write.format(format).options(**options).mode("errorifexists").save(path)
    return df.sparkSession.read.format(format).options(**options).schema(df.schema).load(path)


def _check(kind: Any, name: str) -> None:
    """Look for a column of text in a schema: what is wrong is said before any task runs."""
    # A name with points is one of a nested field, unless a column is called so.
    path = [name] if name in kind.fieldNames() else name.split(".")
    while kind.typeName() == "array" or (path and kind.typeName() == "struct"):
        if kind.typeName() == "array":
            kind = kind.elementType
            continue
        first, *path = path
        if (there := kind.fieldNames().count(first)) != 1:
            raise ParameterError(
                f"columns must be of the frame: {name!r}, of which {first!r} is there {there} times"
            )
        kind = kind[first].dataType
    if path or kind.typeName() not in ("string", "varchar", "char"):
        raise InputTypeError(f"columns must be text: {name!r} is {kind.simpleString()}")


def _ship(spark: SparkSession, recipe: Recipe) -> str | None:
    """Have Spark copy the index to all machines; return its name there."""
    if recipe.index is None:
        return None
    from pyspark.sql.utils import is_remote

    if is_remote():
        spark.addArtifacts(recipe.index, file=True)
    else:
        spark.sparkContext.addFile(recipe.index)
    return Path(recipe.index).name


def _worker(recipe: Recipe, shipped: str | None) -> Any:
    """Return the mechanism of this worker process."""
    one_thread()
    if shipped is None:
        return recipe.mechanism()
    from pyspark import SparkFiles

    return recipe.mechanism(SparkFiles.get(shipped))
