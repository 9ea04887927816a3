"""Specs: the same mechanism from Python, files, the command, and the recipes of engines."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import Cover, Embedding, FiniteLaw, Mechanism, Tem, from_spec
from fastdx._core import spec_keys
from fastdx.engines._recipe import Recipe
from fastdx.exceptions import InputTypeError, ParameterError
from helpers import ROOT
from helpers.command import Command
from helpers.copies import assert_copies
from helpers.policies import made
from helpers.specs import NAMES, WORDS, toml

TEXT = (
    " ".join(WORDS)
    + ", and some words that nobody knows! Paid €12,50 on 05/03/2026, or 7 % of $1,249.90 by 3 May."
)


def test_every_mechanism_is_here(specs: dict[str, dict[str, Any]]) -> None:
    assert list(specs) == NAMES
    kinds = {spec.get("mechanism", "tem") for spec in specs.values()}
    assert kinds == {*fastdx.mechanisms.MECHANISMS, FiniteLaw.name}


def seeded(spec: dict[str, Any], seed: int = 11) -> Mechanism:
    return from_spec({**spec, "seed": seed})


@pytest.mark.parametrize("name", NAMES)
def test_the_same_from_data_files_and_pickles(
    specs: dict[str, dict[str, Any]], name: str, tmp_path: Path
) -> None:
    made = from_spec(specs[name])
    complete = made.spec
    assert json.loads(json.dumps(complete)) == complete
    as_json, as_toml = tmp_path / "spec.json", tmp_path / "spec.toml"
    as_json.write_text(json.dumps(complete))
    as_toml.write_text("\n".join(f"{key} = {toml(value)}" for key, value in complete.items()))
    assert_copies(made, from_spec(complete), from_spec(as_json), from_spec(str(as_toml)))
    text = seeded(specs[name]).privatize(TEXT)
    assert seeded(complete).privatize(TEXT) == text
    assert pickle.loads(pickle.dumps(seeded(complete))).privatize(TEXT) == text


@pytest.mark.parametrize("name", NAMES)
def test_the_command_runs_it(
    specs: dict[str, dict[str, Any]], name: str, tmp_path: Path, command: Command
) -> None:
    path, report = tmp_path / "spec.json", tmp_path / "report.json"
    path.write_text(json.dumps({**specs[name], "seed": 11}))
    said = command("privatize", "--policy", path, "--report", report,
                   "--allow-unchanged", "--format", "jsonl", "--column", "t",
                   stdin=json.dumps({"t": TEXT}) + "\n")  # fmt: skip
    told = json.loads(report.read_text())
    made = seeded(specs[name])
    assert told["spec"] == made.spec
    assert json.loads(said.out)["t"] == made.privatize([TEXT])[0]
    expected = json.loads(json.dumps(made.guarantee.with_bits().to_dict()))
    assert told["guarantee"] == expected
    assert made._has_history or made.unchanged.words > 0


# In another process: tests/python/engines.
@pytest.mark.parametrize("name", NAMES)
def test_the_recipe_of_engines_makes_it(specs: dict[str, dict[str, Any]], name: str) -> None:
    if name == "law":
        with pytest.raises(ParameterError, match="without a law of its own"):
            Recipe.of(spec=specs["law"])
        return
    recipe = pickle.loads(pickle.dumps(Recipe.of(spec={**specs[name], "seed": 11})))
    found, made = recipe.mechanism(), seeded(specs[name])
    assert found == made and found.guarantee.to_dict() == made.guarantee.to_dict()
    assert found.privatize(TEXT) == made.privatize(TEXT)


def test_options_make_the_same_spec(specs: dict[str, dict[str, Any]]) -> None:
    found = made("privatize", "--embedding", specs["tem"]["index"], "--epsilon", 2, "--cover", 5,
                 "--balance", 0.1, "--oov", "mask")  # fmt: skip
    assert found.spec == from_spec(specs["tem-cover"]).spec


def test_what_was_in_memory_is_asked_for() -> None:
    space = Embedding(WORDS, np.random.default_rng(0).normal(size=(60, 3)))
    cover = Cover.nearest(space, 3)
    made = Tem(space, 2.0, cover=cover, remap=cover)
    assert set(made.spec["index"]) == set(made.spec["cover"]) == {"fingerprint"}
    with pytest.raises(ParameterError, match="space must be given, because its fingerprint"):
        from_spec(made.spec)
    with pytest.raises(ParameterError, match="cover must be given, because its fingerprint"):
        from_spec(made.spec, space)
    assert from_spec(made.spec, space, cover=cover, remap=cover) == made
    other = Embedding(WORDS, space.vectors + 1e-3)
    with pytest.raises(ParameterError, match="index must be the one with the fingerprint"):
        from_spec(made.spec, other, cover=cover)
    with pytest.raises(ParameterError, match="cover must be the one with the fingerprint"):
        from_spec(made.spec, space, cover=Cover.nearest(space, 4), remap=cover)
    law = np.exp(-np.abs(np.arange(60)[:, None] - np.arange(60)[None, :]))
    finite = FiniteLaw(space, law)
    assert from_spec(finite.spec, space, law=law) == finite
    with pytest.raises(ParameterError, match="law must be the one with the fingerprint"):
        from_spec(finite.spec, space, law=law + 0.1)
    assert finite != FiniteLaw(space, law + 0.1) and finite != made


def test_what_is_no_spec_is_refused(tmp_path: Path) -> None:
    # Other refusals: tests/it/spec.rs.
    with pytest.raises(ParameterError, match='the key "epsilom"'):
        from_spec({"epsilom": 1})
    with pytest.raises(InputTypeError, match="what JSON can hold"):
        from_spec({"epsilon": np.float64, "index": None})
    path = tmp_path / "spec.toml"
    path.write_text("epsilon = 1\ncoverr = 2\n")
    with pytest.raises(fastdx.FormatError, match=r"spec\.toml, line 2"):
        from_spec(path)
    with pytest.raises(FileNotFoundError):
        from_spec(tmp_path / "none.json")


def test_without_epsilon_it_is_the_recommended_policy() -> None:
    assert from_spec({}) == Tem.recommended()


def test_the_page_has_every_key() -> None:
    page = (ROOT / "docs" / "reference" / "spec.md").read_text("utf-8")
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    shown = {key.strip(" `"): of.strip() for keys, of in rows for key in keys.split(",")}
    for name, kinds in spec_keys():
        assert name in shown, name
        assert shown[name] == (", ".join(kinds) or "all"), name
