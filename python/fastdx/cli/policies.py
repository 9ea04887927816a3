"""A file of named policies, as the service takes it: mechanisms in TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable

from fastdx import Embedding, WordGraph, from_spec
from fastdx._core import open_space, read_policies
from fastdx._engines.recipe import is_index
from fastdx.cli.messages import CommandError
from fastdx.exceptions import FastdxError
from fastdx.mechanisms import Mechanism

__all__ = ["mechanisms"]


def mechanisms(path: str, only: Iterable[str] = ()) -> dict[str, Mechanism]:
    """Return the mechanisms of a file of policies by their names.

    Parameters
    ----------
    path : str
        The file. Files that it names are relative to where it stands.
    only : iterable of str
        Names of policies, in the order in which they are wanted; by default all of the file.

    Raises
    ------
    CommandError
        What is wrong, with the file, the policy and the key.
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
    # Policies on one file share it.
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
