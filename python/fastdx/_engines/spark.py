"""The work of `fastdx.spark` on the driver before a plan runs, and in the worker processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdx._core import privatize_arrow
from fastdx._engines.recipe import Recipe, no_text, one_thread
from fastdx._shared.card import KEY
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def split_name(name: str) -> list[str] | None:
    """Split a column's name at its points, as Spark does; None if Spark would not take it."""
    if re.fullmatch(rf"(?:{PART})(?:\.(?:{PART}))*", name) is None:
        return None
    return [
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in re.findall(PART, name)
    ]


def find_text(schema: Any, name: str, exact: bool) -> tuple[int, tuple[str, ...]]:
    """Find a column of text, or a field within one: what is wrong is said before any task runs.

    Parameters
    ----------
    schema : pyspark.sql.types.StructType
        Of the frame.
    name : str
        The column's name as Spark takes it; a name that Spark would not find may also be a whole
        column's, as ``df.columns`` has it.
    exact : bool
        Whether capital letters matter.

    Returns
    -------
    int, tuple of str
        The column's number, and the names of the fields within it.
    """

    def there(kind: Any, part: str) -> list[int]:
        same = [part == field if exact else part.lower() == field.lower() for field in kind.names]
        return [i for i, is_it in enumerate(same) if is_it]

    path = split_name(name)
    if path is None or not there(schema, path[0]):
        path = [name]
    kind, numbers, fields = schema, [], []
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
        old, key = fields[number], _key(path)
        metadata = {k: v for k, v in (old.metadata or {}).items() if k != key}
        if card is not None:
            metadata[key] = card
        fields[number] = StructField(old.name, old.dataType, old.nullable, metadata)
    return StructType(fields)


def card_in(schema: Any, name: str, exact: bool) -> str:
    """Return the card of a column, or of a field within one."""
    number, path = find_text(schema, name, exact)
    card = (schema.fields[number].metadata or {}).get(_key(path))
    if card is None:
        raise ParameterError(f"column must have a channel card in its metadata: {name!r} has none")
    return str(card)


def _key(path: tuple[str, ...]) -> str:
    """Return the key of a card in the metadata of a column."""
    return ".".join((KEY, *(f"`{part}`" if "." in part else part for part in path)))


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
    """Whether a node draws: `fastdx.spark.privatize`, or a random function of Python."""
    if name.endswith("MapInArrow"):
        return bool(plan.func().name() == "fastdx_privatize")
    if name.endswith("EvalPython"):
        return any(not function.udfDeterministic() for function in _items(plan.udfs()))
    return False


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


def ship_index(spark: SparkSession, recipe: Recipe) -> str | None:
    """Have Spark copy the index to all machines; return its name there."""
    if recipe.index is None:
        return None
    spark.sparkContext.addFile(recipe.index)
    return Path(recipe.index).name


def worker(recipe: Recipe, shipped: str | None) -> Mechanism:
    """Return the mechanism of this worker process."""
    one_thread()
    if shipped is None:
        return recipe.mechanism()
    from pyspark import SparkFiles

    return recipe.mechanism(SparkFiles.get(shipped))
