"""Tests what the engines share: recipes, one mapping a process, errors without text, every door."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastdx
from fastdx.engines._recipe import PrivateColumns, Recipe, no_text
from helpers.errors import origins
from helpers.swapped import SECRET, TEXTS, WANTED


def _maps() -> list[str]:
    """The mappings of this process of an index, on Linux."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text("utf-8").split("\n") if maps.exists() else []
    return [line for line in lines if ".index" in line]


def test_recipes_are_small_and_make_one_mechanism(swap: dict[str, Any], tmp_path: Path) -> None:
    recipe = Recipe.of(**swap)
    words = {"file": str(swap["index"])}
    for made in (Recipe.of(spec={"epsilon": 1e4, "index": words}), recipe):
        data = pickle.dumps(made)
        assert len(data) < 2000 and b"king" not in data  # the words stay in their file
    copy: Recipe = pickle.loads(data)
    assert copy == recipe and copy.mechanism() is recipe.mechanism()
    assert recipe.mechanism().privatize(TEXTS) == WANTED
    # The same file at another place is the same.
    elsewhere = tmp_path / "copy.index"
    shutil.copy(swap["index"], elsewhere)
    assert replace(recipe, index=str(elsewhere)).mechanism() == recipe.mechanism()
    louder = Recipe.of(**{**swap, "epsilon": 2e4})
    mapped = _maps()
    assert louder.mechanism() != recipe.mechanism() and _maps() == mapped


def test_another_or_a_damaged_file_is_refused(
    swap: dict[str, Any], other_index: Path, tmp_path: Path
) -> None:
    recipe = Recipe.of(**{**swap, "oov": "drop"})
    with pytest.raises(fastdx.CorruptFileError, match=r"swap\.index: another file than the one"):
        replace(recipe, index=str(other_index)).mechanism()
    with pytest.raises(fastdx.MissingFileError, match=r"gone\.index"):
        replace(recipe, index=str(tmp_path / "gone.index")).mechanism()
    # Its header is whole, and with it the fingerprint; what it holds is not.
    damaged = tmp_path / "damaged.index"
    fastdx.Tem(fastdx.Embedding(["a", "b"], [[0.0] * 900] * 2), 1.0).save(damaged)
    data = bytearray(damaged.read_bytes())
    assert len(data) > 4200
    data[4200] ^= 1
    damaged.write_bytes(bytes(data))
    with pytest.raises(fastdx.CorruptFileError, match=r"damaged\.index"):
        Recipe.of(1.0, index=damaged)


def test_batches(swap: dict[str, Any]) -> None:
    private = PrivateColumns(iter("ab"), Recipe.of(**swap))
    batch = {"a": np.array(["tea", None], dtype=object), "b": ["king", "queen"], "n": [1, 2]}
    new = private(batch)
    assert new["a"].tolist() == ["coffee", None] and new["b"] == ["queen", "king"]
    assert new["n"] is batch["n"] and batch["a"][0] == "tea"
    table = pa.table({"user": [{"a": "tea"}], "b": ["king"]})
    nested = PrivateColumns("user.a", Recipe.of(**swap))(table)
    assert nested.to_pylist() == [{"user": {"a": "coffee"}, "b": "king"}]
    for bad in ({"a": ["tea"]}, table.drop_columns("user")):
        with pytest.raises(fastdx.ParameterError, match=r"no (column )?'[ab]'"):
            private(bad)
    with pytest.raises(fastdx.ParameterError, match="at least one"):
        PrivateColumns([], Recipe.of(**swap))


def test_errors_carry_no_text(swap: dict[str, Any]) -> None:
    strict = Recipe.of(**{**swap, "oov": "error"})
    with pytest.raises(fastdx.UnknownWordError) as info, no_text():
        strict.mechanism().privatize(["tea", SECRET])
    assert SECRET.encode() not in pickle.dumps(info.value) and "word 0 of text 1" in str(info.value)
    with pytest.raises(fastdx.InputTypeError, match="surrogate, character 10") as broken:
        PrivateColumns("text", strict)({"text": [f"{SECRET} \ud800"]})
    assert all(SECRET.encode() not in pickle.dumps(error) for error in origins(broken.value))


def _forked(recipe: Recipe) -> list[Any]:
    private = recipe.mechanism().privatize(TEXTS)
    return [private, os.getpid(), os.environ.get("FASTDX_NUM_THREADS")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_a_few_short_texts_in_a_forked_process(
    swap: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses one thread; the process that made the recipe keeps all."""
    monkeypatch.delenv("FASTDX_NUM_THREADS", raising=False)
    recipe = Recipe.of(**swap)
    assert recipe.mechanism().privatize(TEXTS) == WANTED  # the parent's threads exist
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = [pool.apply_async(_forked, (recipe,)) for _ in range(4)]
        for result in results:
            private, process, threads = result.get(timeout=60)
            assert private == WANTED and process != os.getpid() and threads == "1"
    assert "FASTDX_NUM_THREADS" not in os.environ


def _datasets(given: dict[str, Any]) -> Callable[[Any], Any]:
    private = import_module("fastdx.engines.datasets").privatize("text", **given)
    return lambda texts: private({"text": texts})["text"]


def _duckdb(given: dict[str, Any]) -> Callable[[Any], Any]:
    connection = import_module("fastdx.engines.duckdb").register(
        import_module("duckdb").connect(), "private", **given
    )
    query = "SELECT private(t) FROM (SELECT unnest($1) AS t)"
    return lambda texts: [row[0] for row in connection.execute(query, [texts]).fetchall()]


def _presidio(given: dict[str, Any]) -> Callable[[Any], Any]:
    operator = import_module("fastdx.engines.presidio").FastdxOperator()
    operator.validate(given)
    return lambda texts: [text and operator.operate(text, given) for text in texts]


def _ray(given: dict[str, Any]) -> Callable[[Any], Any]:
    made: Any = SimpleNamespace(map_batches=lambda kind, **o: kind(*o["fn_constructor_args"]))
    private = import_module("fastdx.engines.ray").privatize(made, "text", **given)
    return lambda texts: private(pa.table({"text": texts}))["text"].to_pylist()


def _sklearn(given: dict[str, Any]) -> Callable[[Any], Any]:
    own = {name: given[name] for name in ("epsilon", "mechanism", "index") if name in given}
    rest = {name: value for name, value in given.items() if name not in own}
    kind = import_module("fastdx.engines.sklearn").Privatizer
    return kind(**own, parameters=rest).fit(TEXTS).transform


def _spacy(given: dict[str, Any]) -> Callable[[Any], Any]:
    own = {**given, "index": str(given["index"])} if "index" in given else given
    nlp = import_module("spacy").blank("en")
    nlp.add_pipe("fastdx", config={"parameters": own})
    return lambda texts: [None if t is None else nlp(t)._.private for t in texts]


def _spark(given: dict[str, Any]) -> None:
    import_module("fastdx.engines.spark").privatize(None, "text", **given)


DOORS = {
    "datasets": _datasets,
    "duckdb": _duckdb,
    "presidio_anonymizer": _presidio,
    "ray": _ray,
    "sklearn": _sklearn,
    "spacy": _spacy,
    "pyspark": _spark,
}


@pytest.mark.parametrize("library", [name for name in DOORS if name != "pyspark"])
def test_every_door_replaces_words_and_shows_no_text(library: str, swap: dict[str, Any]) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    made: Any = DOORS[library]
    assert made(swap)(TEXTS) == WANTED
    with pytest.raises(Exception, match="not in the vocabulary") as info:
        made({**swap, "oov": "error"})(["tea", SECRET])
    for error in origins(info.value):
        assert SECRET not in f"{error} {error!r} {getattr(error, 'word', '')}"


@pytest.mark.parametrize("library", DOORS)
def test_every_door_names_a_wrong_parameter_before_any_text(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    for wrong, named in [
        ({"epsilon": -1.0}, "epsilon"),
        ({"mechanism": "laplace"}, "epsilon"),
        ({"epsilon": 1.0, "mechanism": "tme"}, r"mechanism must be one of tem, .*'tme'"),
        ({"epsilon": 1.0, "consistent": "call"}, "consistent"),
        ({"epsilon": 1.0, "index": "/nowhere/none.index"}, r"none\.index"),
    ]:
        with pytest.raises(fastdx.FastdxError, match=named):
            DOORS[library](wrong)
