"""fastdx in other engines: Spark, Ray Data, scikit-learn, datasets, spaCy, Presidio, DuckDB.

A module is imported when it is asked for, and needs its engine: the extra of the same name.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastdx.engines import datasets, duckdb, presidio, ray, sklearn, spacy, spark

__all__ = ["datasets", "duckdb", "presidio", "ray", "sklearn", "spacy", "spark"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
