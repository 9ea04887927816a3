"""The service makes of a Spec what Python makes of it: every mechanism, law and guarantee."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastdx import from_spec
from fastdx.client import Client
from helpers.specs import WORDS, follows_the_law, toml


def test_every_mechanism(
    start: Callable[..., str], specs: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    lines = []
    for name, spec in specs.items():
        lines.append(f"[policies.{name}]\nallow_unchanged = true")
        lines += [f"{key} = {toml(value)}" for key, value in spec.items()]
    config = tmp_path / "policies.toml"
    config.write_text("\n".join(lines))
    address = start("--config", str(config))
    with Client(f"http://{address}") as client:
        for name, spec in specs.items():
            made = from_spec(spec)
            told = client.guarantee(name)
            public = json.loads(made._complete_spec(False))
            assert told["spec"] == {k: v for k, v in public.items() if k != "verify"}, name
            # The service measures what comes back unchanged and the bits when it has started.
            measured = {"unchanged": None, "bits": None, "sentence": None, "for_users": None}
            proved = json.loads(made.guarantee.to_json()) | measured
            assert told["guarantee"] | measured == proved, name
            if not made.has_law or spec.get("consistent"):
                continue
            drawn = client.privatize(" ".join([WORDS[0]] * 20_000), policy=name).split()
            assert follows_the_law(drawn, made, WORDS[0]), name
