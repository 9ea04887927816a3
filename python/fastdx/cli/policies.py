"""Reads a TOML file of named policies, in the format of the service."""

from __future__ import annotations

import json
from collections.abc import Iterable

from fastdx import Embedding, WordGraph, from_spec
from fastdx._core import open_space, read_policies
from fastdx.cli.messages import CommandError
from fastdx.engines._recipe import is_index
from fastdx.exceptions import FastdxError
from fastdx.mechanisms import Mechanism


def mechanisms(path: str, only: Iterable[str] = ()) -> dict[str, Mechanism]:
    """Return the mechanisms of a file of policies by their names.

    Parameters
    ----------
    path : str
        The file. Paths in it are relative to its folder.
    only : iterable of str
        Names of policies, in the order of the result; by default all policies of the file.

    Raises
    ------
    CommandError
        A policy is wrong; the message names the file, the policy and the key.
    """
    try:
        _, policies = read_policies(path)
    except FastdxError as e:
        raise CommandError(str(e)) from None
    specs = {name: json.loads(spec) for name, spec, _, _ in policies}
    names = list(dict.fromkeys(only)) or list(specs)
    for name in names:
        if name not in specs:
            raise CommandError(f"{path}: no policy is called {name!r}", ", ".join(specs))
    # Policies on one index file share its memory.
    spaces: dict[tuple[str, bool], Embedding | WordGraph] = {}
    made = {}
    for name in names:
        spec = specs[name]
        index = spec.get("index", {})
        try:
            space = None
            if is_index(index):
                key = (index["file"], spec.get("verify", True))
                if key not in spaces:
                    spaces[key] = open_space(*key, False)
                space = spaces[key]
            made[name] = from_spec(spec, space)
        except (FastdxError, OSError) as e:
            raise CommandError(f"{path}: policies.{name}: {e}") from None
    return made
