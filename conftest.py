"""Set-up of doctests, and the examples of pages that have no prompts: tools/page_outputs.py.

Recipes run in a shell: tests/python/repository/test_recipes.py.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tools.page_outputs import Block, examples, run

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent
SPARK = ROOT / "python" / "fastdx" / "engines" / "spark.py"

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
"""The library that fastdx.engines.NAME, lab.evaluation.context or docs/how-to/NAME.md needs."""


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
    python, how_to = ROOT / "python" / "fastdx", ROOT / "docs" / "how-to"
    if path.parent not in (how_to, python / "engines", python / "lab" / "evaluation"):
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
        if isinstance(
            item, pytest.DoctestItem | Examples
        ):  # readers take an example's policy as advice
            item.add_marker(pytest.mark.filterwarnings("error::fastdx.UnchangedWarning"))


def imported(code: str) -> set[str]:
    """Return the packages that code imports."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    names += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


class Examples(pytest.Item):
    """The blocks of one page, or of one section of the page of engines."""

    def __init__(self, *, blocks: list[Block], **other: Any) -> None:
        super().__init__(**other)
        self.blocks = blocks

    def runtest(self) -> None:
        packages = imported("".join(block.code for block in self.blocks))
        for name in sorted(packages):
            if find_spec(name) is None:
                pytest.skip(f"{name} is not installed")
        if "pyspark" in packages and (reason := missing(SPARK)):
            pytest.skip(reason)
        run(self.blocks, self.path)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.blocks[0].line, self.name


class Page(pytest.File):
    def collect(self) -> Iterator[Examples]:
        page = self.path.read_text("utf-8")
        starts = [0]
        if self.path.stem == "engines":
            starts += [page.count("\n", 0, h.start()) for h in re.finditer("^## ", page, re.M)]
        found = examples(page)
        for first, last in itertools.pairwise([*starts, page.count("\n")]):
            if blocks := [block for block in found if first <= block.line < last]:
                name = page.splitlines()[first].strip("# ")
                yield Examples.from_parent(self, name=name, blocks=blocks)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Page | None:
    docs = ROOT / "docs"
    if file_path.suffix != ".md" or not file_path.is_relative_to(docs):
        return None
    if file_path.is_relative_to(docs / "recipes"):
        return None
    return Page.from_parent(parent, path=file_path)
