"""The work of `fastdx.spark` on the driver before a plan runs, and in the worker processes."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdx._core import privatize_arrow
from fastdx._engines.recipe import Recipe, no_text
from fastdx._shared.card import KEY
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

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


def find_text(df: DataFrame, name: str) -> tuple[int, tuple[str, ...]]:
    """Find a column of text, or a field within one, before any task runs.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The frame.
    name : str
        The column's name as Spark takes it; a name that Spark would not find may also be a whole
        column's, as ``df.columns`` has it.

    Returns
    -------
    int, tuple of str
        The column's number, and the names of the fields within it.
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


def schema_with_card(schema: Any, places: list[Any], card: str | None) -> Any:
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


def privatize_fields(mechanism: Mechanism, batch: Any, places: list[Any]) -> Any:
    """Replace the words of columns of a ``pyarrow.RecordBatch``, found by `find_text`."""
    import pyarrow

    with no_text():
        for number, path in places:
            new = pyarrow.array(privatize_arrow(mechanism, batch.column(number), list(path))[0])
            field = batch.schema.field(number).with_type(new.type)
            batch = batch.set_column(number, field, new)
    return batch


def wide_above_draw(plan: Any, wide: str | None = None) -> str | None:
    """Find what may move rows between tasks after words were drawn.

    Spark takes functions of Python as ones that return the same again. Where it loses some outputs
    of a shuffle, it runs the tasks that wrote them again, and tasks behind the shuffle that have
    ended keep what they read. A key of the job in place of fresh draws would not mend that: a task
    behind a shuffle gets its rows in another order, a key of the text alone shows which rows are
    equal, and whoever finds the key in a plan undoes the protection.

    Parameters
    ----------
    plan : py4j.java_gateway.JavaObject
        A physical plan, or a part of one.
    wide : str, optional
        The nearest node above it that may shuffle.

    Returns
    -------
    str or None
        The nearest node above a draw that may shuffle; None if all draws are written by the tasks
        that made them.
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
    return next((found for node in nodes if (found := wide_above_draw(*node))), None)


def _draws(plan: Any, name: str) -> bool:
    """Return whether a node draws: `fastdx.spark.privatize`, or a random function of Python."""
    if name.endswith("MapInArrow"):
        return bool(plan.func().name() == "fastdx_privatize")
    return name.endswith("EvalPython") and any(
        not function.udfDeterministic() for function in _items(plan.udfs())
    )


def _items(sequence: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [sequence.apply(i) for i in range(sequence.size())]


def scalar_function(function: Any, returns: str) -> Any:
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


def on_workers(spark: SparkSession, recipe: Recipe, ship: bool) -> Callable[[], Mechanism]:
    """Return what makes the mechanism in a worker; with `ship`, Spark copies the index there."""
    if not ship or recipe.index is None:
        return recipe.mechanism
    spark.sparkContext.addFile(recipe.index)
    return partial(_of_shipped, recipe, Path(recipe.index).name)


def _of_shipped(recipe: Recipe, name: str) -> Mechanism:
    from pyspark import SparkFiles

    return recipe.mechanism(SparkFiles.get(name))
