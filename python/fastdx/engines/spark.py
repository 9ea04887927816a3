"""Spark: columns of DataFrames and streams, and a function for SQL (extra ``fastdx[spark]``).

Spark evaluates a plan again for every action, for a task that failed, and for one that is slow.
Each time words are drawn again, and ε is spent again. So write the result once, before any shuffle,
and read the written files: `checkpoint`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdx._shared.card import KEY, card_of
from fastdx._shared.columns import privatize_arrow
from fastdx.engines._recipe import Recipe, column_names, no_text
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["checkpoint", "privatize", "register"]

PART = r"`(?:[^`]|``)*`|[^`.]+"
"""A part of a column's name: in backquotes, of which two are one, or without any."""

NARROW = {
    "AdaptiveSparkPlan",
    "ArrowEvalPython",
    "BatchEvalPython",
    "Coalesce",
    "CollectMetrics",
    "ColumnarToRow",
    "Filter",
    "Generate",
    "InMemoryTableScan",
    "InputAdapter",
    "MapInArrow",
    "MapInPandas",
    "Project",
    "PythonMapInArrow",
    "RowToColumnar",
    "Sort",
    "WholeStageCodegen",
}
"""Nodes of a physical plan that keep rows in their task; a global sort has an exchange below it."""


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
        There is no such column, or there are several.
    InputTypeError
        A column is not text.
    CorruptFileError
        A worker finds another index than the one named; its task fails.
    """
    recipe = Recipe.of(**parameters)
    places = list(dict.fromkeys(_find_text(df, name) for name in column_names(columns)))
    schema = _schema_with_card(df.schema, places, card_of(recipe.mechanism()))
    mechanism = _on_workers(df.sparkSession, recipe, ship)

    # `checkpoint` finds this function in plans by its name.
    def fastdx_privatize(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            yield _privatize_fields(mechanism(), batch, places)

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
        The function's name in SQL. The same function for columns is returned:
        ``function(df["text"])``.
    ship, **parameters
        As for `privatize`.
    returns : str, optional
        The type of argument and result: ``'string'`` (default) or ``'array<string>'``.
    """
    mechanism = _on_workers(spark, Recipe.of(**parameters), ship)

    def private(column: Any) -> Any:
        with no_text():
            return mechanism().privatize(column)

    return spark.udf.register(name, _scalar_function(private, returns))


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
    if (wide := _wide_above_draw(java.queryExecution().executedPlan())) is not None:
        raise ParameterError(
            f"df must not be shuffled once words are drawn, and its plan has {wide!r} above the "
            "draws: checkpoint what privatize returned, then do the rest with what was written"
        )
    df.write.format(format).options(**options).mode("errorifexists").save(path)
    return df.sparkSession.read.format(format).options(**options).schema(df.schema).load(path)


def _find_text(df: DataFrame, name: str) -> tuple[int, tuple[str, ...]]:
    """Return the number of a column of text and the names of the fields within, before any task.

    The name is as Spark takes it. A name that Spark would not find may also be that of a whole
    column, as ``df.columns`` has it.
    """
    exact = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"

    def there(kind: Any, part: str) -> list[int]:
        return [i for i, field in enumerate(kind.names)
                if part == field or (not exact and part.lower() == field.lower())]  # fmt: skip

    path, kind, numbers, fields = [name], df.schema, [], []
    if re.fullmatch(rf"(?:{PART})(?:\.(?:{PART}))*", name):
        parts = [part[1:-1].replace("``", "`") if part[0] == "`" else part
                 for part in re.findall(PART, name)]  # fmt: skip
        path = parts if there(kind, parts[0]) else path
    while kind.typeName() == "array" or (path and kind.typeName() == "struct"):
        if kind.typeName() == "array":
            kind = kind.elementType
            continue
        first, *path = path
        if len(found := there(kind, first)) != 1:
            raise ParameterError(
                f"columns must be of the frame: {name!r}, of which {first!r} is there "
                f"{len(found)} times among {', '.join(kind.names)}"
            )
        numbers.append(found[0])
        fields.append(kind.names[found[0]])
        kind = kind.fields[found[0]].dataType
    if path or kind.typeName() not in ("string", "varchar", "char"):
        raise InputTypeError(f"columns must be text: {name!r} is {kind.simpleString()}")
    return numbers[0], tuple(fields[1:])


def _schema_with_card(schema: Any, places: list[Any], card: str | None) -> Any:
    """Return a schema whose columns at these places have a card, and no older one.

    A field within a column has its card in the metadata of the column. Spark compares the types of
    what workers return, of which the metadata of fields within are a part.
    """
    from pyspark.sql.types import StructField, StructType

    fields = list(schema.fields)
    for number, path in places:
        old = fields[number]
        key = ".".join((KEY, *(f"`{part}`" if "." in part else part for part in path)))
        metadata = {k: v for k, v in (old.metadata or {}).items() if k != key}
        if card is not None:
            metadata[key] = card
        fields[number] = StructField(old.name, old.dataType, old.nullable, metadata)
    return StructType(fields)


def _privatize_fields(mechanism: Mechanism, batch: Any, places: list[Any]) -> Any:
    """Replace the words of columns of a ``pyarrow.RecordBatch``, found by `_find_text`."""
    with no_text():
        for number, path in places:
            new, _ = privatize_arrow(mechanism, batch.column(number), path)
            field = batch.schema.field(number).with_type(new.type)
            batch = batch.set_column(number, field, new)
    return batch


def _wide_above_draw(plan: Any, wide: str | None = None) -> str | None:
    """Find what may move rows between tasks after words were drawn.

    Spark takes functions of Python as ones that return the same again. Where it loses some outputs
    of a shuffle, it runs the tasks that wrote them again, and tasks behind the shuffle that have
    ended keep what they read. A key of the job in place of fresh draws would not mend that: a task
    behind a shuffle gets its rows in another order, a key of the text alone shows which rows are
    equal, and whoever finds the key in a plan undoes the protection.

    `wide` is the nearest node above a part of a physical plan that may shuffle. Returns the nearest
    such node above a draw; None if all draws are written by the tasks that made them.
    """
    name = plan.nodeName().split(" (")[0]
    if name.startswith("Scan In-memory"):  # a table that is cached under a name
        name = "InMemoryTableScan"
    if wide is not None and _draws(plan, name):
        return wide
    if name not in NARROW:
        wide = name
    if name == "AdaptiveSparkPlan":
        below = [plan.initialPlan()]
    elif name == "InMemoryTableScan":
        below = [plan.relation().cachedPlan()]
    else:
        below = _items(plan.children())
    nodes = [(child, wide) for child in below]
    nodes += [(child, "Subquery") for child in _items(plan.subqueries())]
    return next((found for node in nodes if (found := _wide_above_draw(*node))), None)


def _draws(plan: Any, name: str) -> bool:
    """Return whether a node draws: by `privatize`, or a random function of Python."""
    if name.endswith("MapInArrow"):
        return bool(plan.func().name() == "fastdx_privatize")
    return name.endswith("EvalPython") and any(
        not function.udfDeterministic() for function in _items(plan.udfs())
    )


def _items(sequence: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [sequence.apply(i) for i in range(sequence.size())]


def _scalar_function(function: Any, returns: str) -> Any:
    """Make a function of a column one that Spark calls with batches, and takes as random."""
    from pyspark.sql import functions

    if hasattr(functions, "arrow_udf"):  # Spark 4.1 and later
        from pyarrow import Array as Column

        made = functions.arrow_udf
    else:
        from pandas import Series as Column

        made = functions.pandas_udf
    # Spark reads the annotations, which would be strings here.
    function.__annotations__ = {"column": Column, "return": Column}
    return made(function, returns).asNondeterministic()


def _on_workers(spark: SparkSession, recipe: Recipe, ship: bool) -> Callable[[], Mechanism]:
    """Return what makes the mechanism in a worker; with `ship`, Spark copies the index there."""
    if not ship or recipe.index is None:
        return recipe.mechanism
    spark.sparkContext.addFile(recipe.index)
    return partial(_of_shipped, recipe, Path(recipe.index).name)


def _of_shipped(recipe: Recipe, name: str) -> Mechanism:
    from pyspark import SparkFiles

    return recipe.mechanism(SparkFiles.get(name))
