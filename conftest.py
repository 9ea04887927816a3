"""Set-up of doctests: skips engines that are not installed, and checks the policies of examples.

Readers take an example as advice. So an example fails if it makes a mechanism under which more than
a fifth of common words come back unchanged, unless the page says so near it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tools"))

from shown_policies import MUCH, said_beside  # noqa: E402

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
"""The packages that fastdx.NAME, docs/engines/NAME.md and fastdx.lab.evaluation.context need."""


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
    if path.parent not in (ROOT / "docs" / "engines", python, python / "lab" / "evaluation"):
        return None
    library = LIBRARIES.get(path.stem)
    if library is not None and find_spec(library) is None:
        extra = "networks" if library == "keras" else path.stem
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


COMMON = 1000
"""Nobody takes the ε of an example with fewer words as advice."""
INNER = ("calibration", "lab", "cli")
"""Parts of the package that make mechanisms to measure them, not to release anything."""


def _example(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the example that caused a call, if only package code lies between."""
    package = ROOT / "python" / "fastdx"
    while frame is not None and (path := Path(frame.f_code.co_filename)).is_relative_to(package):
        if path.relative_to(package).parts[0].removesuffix(".py") in INNER:
            return None
        frame = frame.f_back
    return frame if frame is not None and frame.f_code.co_filename.startswith("<doctest") else None


@pytest.fixture(autouse=True)
def _policies_are_defensible(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    from fastdx.mechanisms import Mechanism

    made: list[tuple[int, Mechanism]] = []
    new = Mechanism._new.__func__  # type: ignore[attr-defined]

    def watched(cls: type[Mechanism], *args: Any, **kwargs: Any) -> Mechanism:
        mechanism: Mechanism = new(cls, *args, **kwargs)
        if (frame := _example(sys._getframe(1))) is not None:
            # "<doctest NAME[3]>": the third example.
            number = int(frame.f_code.co_filename.rsplit("[", 1)[1].rstrip("]>"))
            made.append((number, mechanism))
        return mechanism

    monkeypatch.setattr(Mechanism, "_new", classmethod(watched))
    yield
    shown = request.node.dtest
    if shown is None:
        return
    text = (shown.docstring or "").split("\n")
    for number, mechanism in made:
        if len(mechanism.space) < COMMON or (mean := mechanism.unchanged.mean) <= MUCH:
            continue
        example = shown.examples[number]
        assert said_beside(text, example.lineno + 1), (
            f"{request.node.name}: {example.source.strip()!r}: {mean:.0%} of common words come back"
        )
