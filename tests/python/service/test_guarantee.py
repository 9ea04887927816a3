"""A guarantee from the service: the same JSON as from Python, as its schema describes it."""

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from fastdx import Embedding, Mechanism, MultivariateLaplace, Tem
from helpers import ROOT
from helpers.spaces import numbered

SCHEMA = json.loads((ROOT / "docs" / "reference" / "guarantee.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
# Measuring what comes back and what is told takes a while; nobody waits for it.
PATIENCE = 300


def got(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"http://{address}{path}") as answer:
        return json.load(answer)


def measured(address: str, policy: str) -> dict[str, Any]:
    """A policy's description, once it was measured what it does and what it tells."""
    end = time.monotonic() + PATIENCE
    while True:
        found = got(address, f"/v1/guarantee/{policy}")
        VALIDATOR.validate(found["guarantee"])
        of = found["guarantee"]
        if None not in (of["unchanged"], of["bits"]) or time.monotonic() > end:
            assert isinstance(found, dict)
            return found
        time.sleep(0.1)


def test_python_and_the_service_give_the_same(start: Callable[..., str], tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    e = numbered(rng.normal(size=(60, 3)))
    plain, certified = tmp_path / "plain.fdx", tmp_path / "certified.fdx"
    e.save(plain)
    nominal = Tem(e, 2.0, certified=True)
    nominal.save(certified)
    of_file, with_proof = Embedding.load(plain), Embedding.load(certified)

    large = tmp_path / "large.fdx"
    numbered(rng.normal(size=(21_000, 2))).save(large)
    of_large = Embedding.load(large)

    index = f'index = "{plain}"\nexclude = "none"\n'
    policies: dict[str, tuple[str, Mechanism]] = {
        "tem": (f"{index}epsilon = 2.0", Tem(of_file, 2.0)),
        "cover": (f"{index}epsilon = 2.0\ncover = 10", Tem(of_file, 2.0, cover=10)),
        "kept": (
            f'{index}epsilon = 2.0\noov = "keep"\nskip = ["w1"]\nconsistent = true',
            Tem(of_file, 2.0, oov="keep", skip=["w1"], consistent=True),
        ),
        "certified": (
            f'index = "{certified}"\nexclude = "none"\nepsilon = {nominal.nominal!r}',
            Tem(with_proof, nominal.nominal),
        ),
        # Of the built-in words; their exact bits would take seconds, and noise has none.
        "laplace": (
            'mechanism = "laplace"\nepsilon = 3.0',
            MultivariateLaplace(epsilon=3.0, exclude="offensive"),
        ),
        # Of so many words that bits are estimated.
        "many": (f'index = "{large}"\nexclude = "none"\nepsilon = 8.0', Tem(of_large, 8.0)),
    }
    file = tmp_path / "policies.toml"
    tables = (f"[policies.{name}]\n{table}\n" for name, (table, _) in policies.items())
    file.write_text("\n".join(tables))
    address = start("--config", str(file))

    for name, (_, mechanism) in policies.items():
        found = measured(address, name)
        assert found["guarantee"] == mechanism.guarantee.with_bits().to_dict(), name
        bits = found["guarantee"]["bits"]
        assert (bits["value"] is None) == (name == "laplace")
        assert (bits["sampled"] or 0) > 0 or name != "many"
        assert (found["guarantee"]["certificate"] is not None) == (name == "certified")
        assert (found["policy"], found["pad"], found["spans_only"]) == (name, None, False)
    listed = {policy["name"]: policy for policy in got(address, "/v1/policies")["policies"]}
    assert listed.keys() == policies.keys()
    for name, (_, mechanism) in policies.items():
        for key in ("mechanism", "metric", "epsilon"):
            assert listed[name][key] == mechanism.guarantee.to_dict()[key], (name, key)
