"""Tests the common part of the engines: recipes, one mapping a process, errors without text."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fastdx
from fastdx._engines.recipe import Recipe, column_names, no_text, privatize_batch, privatize_values
from helpers.swapped import SECRET, TEXTS, WANTED


def test_recipes_are_small_and_make_one_mechanism(swap: dict[str, Any], tmp_path: Path) -> None:
    recipe = Recipe.of(**swap)
    data = pickle.dumps(recipe)
    assert len(data) < 2000
    copy: Recipe = pickle.loads(data)
    assert copy == recipe and copy.mechanism() is recipe.mechanism()
    assert recipe.mechanism().privatize(TEXTS) == WANTED
    # The same file at another place is the same, and not mapped again.
    elsewhere = tmp_path / "copy.index"
    shutil.copy(swap["index"], elsewhere)
    assert recipe.mechanism(str(elsewhere)) is recipe.mechanism()
    louder = Recipe.of(**{**swap, "epsilon": 2e4, "index": elsewhere})
    assert louder.mechanism() is not recipe.mechanism()
    assert louder.mechanism().space is recipe.mechanism().space
    if Path("/proc/self/maps").exists():
        maps = Path("/proc/self/maps").read_text("utf-8")
        assert "swap.index" in maps and "copy.index" not in maps


def test_another_or_a_damaged_file_is_refused(
    swap: dict[str, Any], other_index: Path, tmp_path: Path
) -> None:
    recipe = Recipe.of(**{**swap, "oov": "drop"})
    unseen = replace(recipe, fingerprint="0" * 32)
    with pytest.raises(fastdx.CorruptFileError, match=r"swap\.index is not the file that was"):
        unseen.mechanism(str(other_index))
    with pytest.raises(fastdx.MissingFileError, match=r"gone\.index"):
        unseen.mechanism(str(tmp_path / "gone.index"))
    # Its header is whole, and with it the fingerprint; what it holds is not.
    damaged = tmp_path / "damaged.index"
    fastdx.Tem(fastdx.Embedding(["a", "b"], [[0.0] * 900] * 2), 1.0).save(damaged)
    data = bytearray(damaged.read_bytes())
    assert len(data) > 4200
    data[4200] ^= 1
    damaged.write_bytes(bytes(data))
    with pytest.raises(fastdx.CorruptFileError, match=r"damaged\.index"):
        Recipe.of(1.0, index=damaged)


def test_every_mechanism_works_on_an_index(tmp_path: Path, small: fastdx.Embedding) -> None:
    path = tmp_path / "small.index"
    small.save(path)
    for name, kind in fastdx.mechanisms.MECHANISMS.items():
        if kind.default_space == "english":
            more = {"cover": 5} if name == "response" else {}
            made = Recipe.of(5.0, name, path, **more).mechanism()
            assert made.name == name and set(made.space.words) == set(small.words)


def test_wrong_parameters(swap: dict[str, Any]) -> None:
    with pytest.raises(fastdx.ParameterError, match="consistent"):
        Recipe.of(**swap, consistent="call")
    with pytest.raises(fastdx.ParameterError, match="mechanism"):
        Recipe.of(1.0, "tme")
    with pytest.raises(fastdx.ParameterError, match="columns"):
        column_names([])
    assert column_names("a") == ["a"] and column_names(iter("ab")) == ["a", "b"]


def test_errors_carry_no_text(swap: dict[str, Any]) -> None:
    strict = Recipe.of(**{**swap, "oov": "error"}).mechanism()
    with pytest.raises(fastdx.UnknownWordError) as info, no_text():
        strict.privatize(["tea", SECRET])
    assert SECRET.encode() not in pickle.dumps(info.value) and "word 0 of text 1" in str(info.value)
    with pytest.raises(fastdx.InputTypeError, match="surrogate, character 10") as broken:
        privatize_batch(strict, {"text": [f"{SECRET} \ud800"]}, ["text"])
    error: BaseException | None = broken.value
    while error is not None:
        assert SECRET.encode() not in pickle.dumps(error)
        error = error.__context__


def _forked(recipe: Recipe) -> list[Any]:
    return [privatize_values(recipe.mechanism(), TEXTS), os.getpid()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_a_few_short_texts_in_a_forked_process(swap: dict[str, Any]) -> None:
    recipe = Recipe.of(**swap)
    assert privatize_values(recipe.mechanism(), TEXTS) == WANTED  # the parent's threads exist
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = [pool.apply_async(_forked, (recipe,)) for _ in range(4)]
        for result in results:
            private, process = result.get(timeout=60)
            assert private == WANTED and process != os.getpid()
