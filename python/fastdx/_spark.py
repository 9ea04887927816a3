"""What `fastdx.spark` does on the driver before a plan runs, and in the worker processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdx._worker import Recipe, one_thread
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_column(kind: Any, name: str) -> None:
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
