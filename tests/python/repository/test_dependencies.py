"""tools/dependencies.py: what deny.toml forbids, planted, is found."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from helpers import ROOT

tomllib = pytest.importorskip("tomllib")

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
Metadata = dict[str, Any]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dependencies", ROOT / "tools/dependencies.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rules() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))
    return found


def crate(name: str, licence: str | None, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "version": "1.0.0",
        "license": licence,
        "source": CRATES_IO,
        "publish": None,
        "manifest_path": f"/{name}/Cargo.toml",
        "dependencies": [],
    }
    made |= more
    return made | {"id": f"{made['source']}#{name}@{made['version']}"}


def sound() -> Metadata:
    ours = crate("fastdx", "MIT OR Apache-2.0", source=None,
                 dependencies=[{"name": "rand", "req": "^0.10"}])  # fmt: skip
    packages = [
        ours,
        crate("fastdx-fuzz", None, source=None, publish=[]),
        crate("rand", "MIT/Apache-2.0"),
        crate("either", "GPL-3.0-only OR (MIT AND Zlib)"),
        crate("compiled", "Apache-2.0 WITH LLVM-exception"),
        crate("libfuzzer-sys", "(MIT OR Apache-2.0) AND NCSA"),
        crate("syn", "MIT"),
        crate("syn", "MIT", version="2.0.0"),
    ]
    return {"packages": packages, "workspace_members": [p["id"] for p in packages[:2]]}


def test_sound_crates_pass(tool: ModuleType, rules: dict[str, Any]) -> None:
    assert tool.faults(sound(), rules) == []


@pytest.mark.parametrize(
    ("package", "told"),
    [
        (crate("evil", "GPL-3.0-only"), "evil 1.0.0: the licence GPL-3.0-only is not allowed"),
        (crate("evil", "MIT AND GPL-3.0-only"), "evil 1.0.0: the licence MIT AND"),
        (crate("evil", "MIT AND (GPL-2.0 OR AGPL-3.0)"), "is not allowed"),
        (crate("evil", "GPL-3.0-only OR MIT AND SSPL-1.0"), "is not allowed"),
        (crate("evil", "MIT WITH some-exception"), "is not allowed"),
        (crate("evil", "NCSA"), "evil 1.0.0: the licence NCSA is not allowed"),
        (crate("evil", None), "evil 1.0.0 states no licence"),
        (crate("evil", "MIT MIT"), "'MIT MIT' is no licence expression"),
        (crate("evil", "(MIT"), "'(MIT' is no licence expression"),
        (crate("evil", "MIT", source="git+https://example.org/evil#1"), "comes from git+https"),
        (crate("evil", "MIT", source="registry+https://example.org"), "comes from registry+"),
        (crate("evil", "MIT", source=None), "evil 1.0.0 comes from the folder /evil"),
        (crate("openssl-sys", "MIT"), "openssl-sys is banned"),
        (crate("rand", "MIT", version="0.9.0"), "rand comes in the versions 0.9.0, 1.0.0"),
    ],
)
def test_a_planted_crate_is_found(
    tool: ModuleType, rules: dict[str, Any], package: dict[str, Any], told: str
) -> None:
    metadata = sound()
    metadata["packages"].append(package)
    (fault,) = tool.faults(metadata, rules)
    assert told in fault


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: r["bans"].update(skip=[]), "does not know [bans] skip"),
        (lambda r: r.update(advisories={"yanked": "deny"}), "does not know [advisories] yanked"),
        (lambda r: r["bans"]["deny"].append({"crate": "x", "version": "1"}), "['version']"),
        (lambda r: r["licenses"]["allow"].remove("Zlib"), "either 1.0.0: the licence"),
    ],
)
def test_rules_that_it_does_not_know_or_that_are_missed_are_faults(
    tool: ModuleType, rules: dict[str, Any], change: Callable[[dict[str, Any]], None], told: str
) -> None:
    changed = copy.deepcopy(rules)
    change(changed)
    (fault,) = tool.faults(sound(), changed)
    assert told in fault


def test_any_version_is_a_fault(tool: ModuleType, rules: dict[str, Any]) -> None:
    metadata = sound()
    metadata["packages"][0]["dependencies"][0]["req"] = "*"
    assert tool.faults(metadata, rules) == ["fastdx takes any version of rand"]
