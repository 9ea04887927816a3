"""spaCy's component against the real thing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'fastdx[spacy]'")

import spacy

import fastdx.engines.spacy
from helpers import ROOT
from helpers.swapped import TEXTS, WANTED

GIVEN = [text for text in TEXTS if text is not None]
EXPECTED = [text for text in WANTED if text is not None]


@pytest.fixture
def config(swap: dict[str, Any]) -> dict[str, Any]:
    return {"parameters": {**swap, "index": str(swap["index"])}}


@pytest.fixture
def nlp(config: dict[str, Any]) -> spacy.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("fastdx", config=config)
    return nlp


def with_entities(config: dict[str, Any], entities: bool | list[str]) -> spacy.Language:
    nlp = spacy.blank("en")
    ruler: Any = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([
        {"label": "PERSON", "pattern": "king"}, {"label": "DRINK", "pattern": "tea"},
    ])  # fmt: skip
    nlp.add_pipe("fastdx", config={**config, "entities": entities})
    return nlp


def test_the_document_itself_stays(nlp: spacy.Language) -> None:
    doc = nlp("tea")
    assert (doc._.private, doc.text, doc[0].text) == ("coffee", "tea", "tea")


def test_pipes(nlp: spacy.Language) -> None:
    docs = nlp.pipe(GIVEN * 20, batch_size=7, n_process=2)
    assert [doc._.private for doc in docs] == EXPECTED * 20


def test_entities(config: dict[str, Any]) -> None:
    text = "The king,\n drinks  tea."
    assert with_entities(config, True)(text)._.private == "The queen,\n drinks  coffee."
    assert with_entities(config, ["DRINK"])(text)._.private == "The king,\n drinks  coffee."
    assert with_entities(config, [])(text)._.private == text


def test_pipelines_are_saved_with_their_config(nlp: spacy.Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline")(GIVEN[0])._.private == EXPECTED[0]


def test_the_package_tells_spacy_of_the_component() -> None:
    """`nlp.add_pipe("fastdx")` needs no import, by the entry point."""
    if sys.version_info < (3, 11):
        pytest.skip("tomllib comes with Python 3.11")
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    points = project["project"]["entry-points"]["spacy_factories"]
    assert points == {"fastdx": "fastdx.engines.spacy:Privatizer"}
    assert callable(fastdx.engines.spacy.Privatizer)
