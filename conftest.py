"""Pages and modules for engines that are not installed are skipped, and say so."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
LIBRARIES = {
    "context": "keras",
    "datasets": "datasets",
    "duckdb": "duckdb",
    "presidio": "presidio_anonymizer",
    "ray": "ray",
    "sklearn": "sklearn",
    "spacy": "spacy",
    "spark": "pyspark",
}
"""What fastdx.NAME and docs/engines/NAME.md need; and fastdx.evaluation.context."""


# Spark's workers run the python3 of the path unless told otherwise.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def missing(path: Path) -> str | None:
    """Why a page or module cannot run here."""
    python = ROOT / "python" / "fastdx"
    if path.parent not in (ROOT / "docs" / "engines", python, python / "evaluation"):
        return None
    library = LIBRARIES.get(path.stem)
    if library is not None and find_spec(library) is None:
        extra = "experiments" if library == "keras" else path.stem
        return f"{library} is not installed: pip install 'fastdx[{extra}]'"
    if path.stem == "spark" and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Spark needs Java, which is not there"
    return None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    # A module that builds on its library's classes cannot be imported without it.
    return True if collection_path.suffix == ".py" and missing(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if reason := missing(item.path):
            item.add_marker(pytest.mark.skip(reason=reason))
