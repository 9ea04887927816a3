"""The service makes of a Spec what Python makes of it: every mechanism, law and guarantee."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import jsonschema
import numpy as np

from fastdx import from_spec
from fastdx.client import Client
from helpers import ROOT
from helpers.spaces import numbered
from helpers.specs import WORDS, follows_the_law, toml

SCHEMA = json.loads((ROOT / "docs" / "reference" / "guarantee.schema.json").read_text())
# The service measures what comes back and what is told when it has started; nobody waits for it.
PATIENCE = 300


def measured(client: Client, policy: str) -> dict[str, Any]:
    """A policy's description, once its bits are computed, which is the last that is measured."""
    end = time.monotonic() + PATIENCE
    while (found := client.guarantee(policy))["guarantee"]["bits"] is None:
        assert time.monotonic() < end, policy
        time.sleep(0.1)
    return found


def test_every_mechanism(
    start: Callable[..., str], specs: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    # So many words that bits are estimated.
    numbered(np.random.default_rng(5).normal(size=(21_000, 2))).save(tmp_path / "many.fdx")
    many = {"index": str(tmp_path / "many.fdx"), "mechanism": "response", "epsilon": 8.0,
            "cover": 1, "exclude": "none"}  # fmt: skip
    specs = {**specs, "many": many}
    lines = []
    for name, spec in specs.items():
        lines.append(f"[policies.{name}]\nallow_unchanged = true")
        lines += [f"{key} = {toml(value)}" for key, value in spec.items()]
    config = tmp_path / "policies.toml"
    config.write_text("\n".join(lines))
    address = start("--config", str(config))
    with urlopen(f"http://{address}/v1/policies") as answer:
        listed = {policy["name"]: policy for policy in json.load(answer)["policies"]}
    assert listed.keys() == specs.keys()
    with Client(f"http://{address}") as client:
        for name, spec in specs.items():
            made, told = from_spec(spec), measured(client, name)
            public = json.loads(made._complete_spec(False))
            assert told["spec"] == {k: v for k, v in public.items() if k != "verify"}, name
            jsonschema.validate(told["guarantee"], SCHEMA)
            assert told["guarantee"] == made.guarantee.with_bits().to_dict(), name
            assert ((told["guarantee"]["bits"]["sampled"] or 0) > 0) == (name == "many")
            for key in ("mechanism", "metric", "epsilon"):
                assert listed[name][key] == told["guarantee"][key], (name, key)
            if name == "many" or not made.has_law or spec.get("consistent"):
                continue
            drawn = client.privatize(" ".join([WORDS[0]] * 20_000), policy=name).split()
            assert follows_the_law(drawn, made, WORDS[0]), name
