"""Checks licences, sources and versions of all crates in Cargo.lock by the rules of deny.toml.

    python tools/dependencies.py

It does a small part of `cargo deny check licenses bans sources` (`make deny`). It needs only cargo,
so `make lint` always runs it. It reads the manifests of crates; for a manifest without a licence,
`make deny` also reads the licence's text. A key of deny.toml that this script does not know is a
fault, so it never skips a rule silently.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parents[1]

KNOWN = {
    "graph": {"all-features"},
    "licenses": {"allow", "confidence-threshold", "exceptions", "private"},
    "bans": {"multiple-versions", "wildcards", "allow-wildcard-paths", "deny"},
    "sources": {"unknown-registry", "unknown-git", "allow-registry", "allow-git"},
}


def satisfied(expression: str, allowed: Collection[str]) -> bool:
    """Return whether these licences satisfy an SPDX expression; AND binds closer than OR.

    Raises
    ------
    ValueError
        The string is no such expression.
    """
    tokens = re.findall(r"[()]|[^\s()/]+|/", expression)

    def either() -> bool:
        met = both()
        while tokens and tokens[0] in ("OR", "/"):  # older manifests write a slash for OR
            tokens.pop(0)
            met = both() or met
        return met

    def both() -> bool:
        met = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = one() and met
        return met

    def one() -> bool:
        if not tokens or tokens[0] in (")", "OR", "AND", "WITH", "/"):
            raise ValueError(f"{expression!r} is no licence expression")
        if (name := tokens.pop(0)) == "(":
            met = either()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(f"{expression!r} is no licence expression")
            return met
        if tokens[:1] == ["WITH"]:
            name = f"{name} WITH {tokens[1] if len(tokens) > 1 else ''}"
            del tokens[:2]
        return name in allowed

    met = either()
    if tokens:
        raise ValueError(f"{expression!r} is no licence expression")
    return met


def faults(metadata: dict[str, Any], rules: dict[str, Any]) -> list[str]:
    """Return the violations of the rules by the crates of `cargo metadata`, a sentence each."""
    found = [f"deny.toml: tools/dependencies.py does not know [{table}] {key}"
             for table, keys in rules.items() for key in keys
             if key not in KNOWN.get(table, ())]  # fmt: skip
    ours = set(metadata["workspace_members"])
    for package in metadata["packages"]:
        found += of_licence(package, rules["licenses"], package["id"] in ours)
        found += of_source(package, rules["sources"], package["id"] in ours)
    return sorted(found + of_versions(metadata, rules["bans"]))


def of_licence(package: dict[str, Any], rules: dict[str, Any], ours: bool) -> list[str]:
    name = f"{package['name']} {package['version']}"
    if ours and package["publish"] == [] and rules["private"]["ignore"]:
        return []
    if not (licence := package["license"]):
        return [f"{name} states no licence"]
    own = [name for exception in rules["exceptions"] if exception["crate"] == package["name"]
           for name in exception["allow"]]  # fmt: skip
    try:
        if satisfied(licence, {*rules["allow"], *own}):
            return []
    except ValueError as error:
        return [f"{name}: {error}"]
    return [f"{name}: the licence {licence} is not allowed"]


def of_source(package: dict[str, Any], rules: dict[str, Any], ours: bool) -> list[str]:
    source = package["source"]
    allowed = {f"registry+{url}" for url in rules["allow-registry"]}
    allowed |= {f"git+{url}" for url in rules["allow-git"]}
    if source in allowed or (ours and source is None):
        return []
    where = source or f"the folder {Path(package['manifest_path']).parent}"
    return [f"{package['name']} {package['version']} comes from {where}"]


def of_versions(metadata: dict[str, Any], rules: dict[str, Any]) -> list[str]:
    versions: defaultdict[str, set[str]] = defaultdict(set)
    found = []
    for package in metadata["packages"]:
        versions[package["name"]].add(package["version"])
        if package["id"] in metadata["workspace_members"]:
            found += [f"{package['name']} takes any version of {needed['name']}"
                      for needed in package["dependencies"]
                      if needed["req"] == "*" and not needed.get("path")]  # fmt: skip
    for rule in rules["deny"]:
        name = rule["crate"]
        if unknown := rule.keys() - {"crate", "deny-multiple-versions"}:
            found.append(f"deny.toml: tools/dependencies.py does not know {sorted(unknown)}")
        if name in versions and not rule.get("deny-multiple-versions"):
            found.append(f"{name} is banned")
        elif len(versions[name]) > 1:
            found.append(f"{name} comes in the versions {', '.join(sorted(versions[name]))}")
    return found


def main() -> None:
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    metadata = json.loads(told.stdout)
    found = faults(metadata, tomllib.loads((ROOT / "deny.toml").read_text("utf-8")))
    print("\n".join(found) or f"{len(metadata['packages'])} crates are as deny.toml asks")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
