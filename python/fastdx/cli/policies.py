"""Reads files of policies: a Spec, or named policies in the format of the service."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from fastdx import from_spec
from fastdx._core import read_policies, read_spec
from fastdx.cli.messages import CommandError
from fastdx.exceptions import FastdxError
from fastdx.mechanisms import Mechanism

_NAMED = re.compile(r"^\s*(\[\s*)?policies\b", re.M)


class Policy(NamedTuple):
    """A Spec, and how it is offered."""

    spec: dict[str, Any]
    spans_only: bool = False
    allow_unchanged: bool = False


def has_names(path: str) -> bool:
    """Return whether a file has named policies; if not, it is one Spec."""
    text = Path(path).read_text("utf-8", errors="replace")
    return not text.lstrip().startswith("{") and _NAMED.search(text) is not None


def one(given: str) -> Policy:
    """Return the policy of FILE or FILE:NAME: a Spec, or the policy of this name or by default."""
    path, name = given, ""
    if ":" in given[1:] and not Path(given).exists():
        path, name = given.rsplit(":", 1)
    if not has_names(path):
        if name:
            raise CommandError(f"{path}: it is one Spec, and has no policy {name!r}")
        return Policy(json.loads(read_spec(path)))
    default, named = _read(path)
    if not name and default is None:
        raise CommandError(f"{path}: no policy is the default one: give FILE:NAME",
                           ", ".join(named))  # fmt: skip
    chosen = name or str(default)
    if chosen not in named:
        raise CommandError(f"{path}: no policy is called {chosen!r}", ", ".join(named))
    policy = named[chosen]
    if policy.spans_only:
        raise CommandError(f"{path}: policies.{chosen}: it is for spans only, and a file has none")
    return policy


def mechanisms(path: str) -> dict[str, Mechanism]:
    """Return the mechanisms of a file of policies by their names.

    Paths in the file are relative to its folder. Errors name the file, the policy and the key.
    """
    _, named = _read(path)
    made = {}
    for name, policy in named.items():
        try:
            made[name] = from_spec(policy.spec)
        except (FastdxError, OSError) as e:
            raise CommandError(f"{path}: policies.{name}: {e}") from None
    return made


def _read(path: str) -> tuple[str | None, dict[str, Policy]]:
    default, named = read_policies(path)
    return default, {name: Policy(json.loads(spec), *more) for name, spec, *more in named}
