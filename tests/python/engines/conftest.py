"""The fixture of the engines' tests: a mechanism that never releases a word as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastdx import Cover, Embedding, Tem
from helpers.swapped import SWAPPED


@pytest.fixture(scope="session")
def swap(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The parameters of a mechanism that swaps words: what is released raw is seen."""
    embedding = Embedding(list(SWAPPED), [[0.0], [0.1], [5.0], [5.2]])
    cover = Cover.from_sets(embedding, {word: [other] for word, other in SWAPPED.items()})
    path = tmp_path_factory.mktemp("engines") / "swap.index"
    # At this ε an output of another set than the word's own has a probability below e^-500.
    Tem(embedding, 1e4, cover=cover, gamma=1e6).save(path)
    return {"epsilon": 1e4, "gamma": 1e6, "oov": "mask", "index": path}


@pytest.fixture
def other_index(tmp_path: Path) -> Path:
    """A file that is fine and another one."""
    path = tmp_path / "swap.index"
    Embedding(["tea", "king"], [[0.0], [1.0]]).save(path)
    return path
