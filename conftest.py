"""Set-up of doctests: skips engines that are not installed, watches the policies of examples."""

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
    "readable-text": "llama_cpp",
    "sklearn": "sklearn",
    "spacy": "spacy",
    "spark": "pyspark",
}
"""What fastdx.engines.NAME, docs/engines/NAME.md and others of these names need."""


# A process that is forked while another thread is in a routine of OpenBLAS may hang. numpy reads
# this when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# By default Spark's workers run the python3 on PATH.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
# Spark's default for Parquet is snappy, which loads a library of musl where musl is installed
# beside glibc, as for `make release-check`. Java itself has gzip.
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS", "--conf spark.sql.parquet.compression.codec=gzip pyspark-shell"
)


def missing(path: Path) -> str | None:
    """Return the reason why a page or module cannot run here, or None."""
    python = ROOT / "python" / "fastdx"
    docs = ROOT / "docs"
    homes = (docs / "engines", docs / "how-to", python / "engines", python / "lab" / "evaluation")
    if path.parent not in homes:
        return None
    library = LIBRARIES.get(path.stem)
    if library is not None and find_spec(library) is None:
        extra = {"keras": "networks", "llama_cpp": "language-model"}.get(library, path.stem)
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
        if isinstance(item, pytest.DoctestItem):  # readers take an example's policy as advice
            item.add_marker(pytest.mark.filterwarnings("error::fastdx.UnchangedWarning"))
