"""A file of named policies, as the service takes it: mechanisms in TOML."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastdx import Embedding, MultivariateLaplace, Tem, WordGraph
from fastdx._core import open_space, space_cover
from fastdx.cli.messages import CommandError
from fastdx.exceptions import FastdxError
from fastdx.mechanisms import Mechanism
from fastdx.mechanisms.tem import recommended

__all__ = ["mechanisms"]

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
KEYS: dict[str, Any] = {
    "mechanism": str, "epsilon": float, "gamma": float, "beta": float, "index": str,
    "verify": bool, "cover": int, "balance": float, "exclude": (str, list), "oov": str,
    "skip": list, "consistent": (bool, str), "pad": float, "spans_only": bool,
    "cache_bytes": int, "warm": str, "page": bool, "allow_unchanged": bool,
}  # fmt: skip
"""What a policy may say (docs/service.md), and its type. An integer is a number too."""
ONLY_TEM = ("gamma", "beta", "cover", "balance", "cache_bytes")


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
    policies = _policies(path)
    names = list(dict.fromkeys(only)) or list(policies)
    for name in names:
        if name not in policies:
            raise CommandError(f"{path}: no policy is called {name!r}", ", ".join(policies))
    spaces: dict[tuple[str | None, bool], Embedding | WordGraph] = {}
    made = {}
    for name in names:
        try:
            made[name] = _mechanism(policies[name], Path(path).parent, spaces)
        except (FastdxError, OSError, CommandError) as e:
            raise CommandError(f"{path}: policies.{name}: {e}") from None
    return made


def _policies(path: str) -> dict[str, dict[str, Any]]:
    """Return what the file says of each policy, keys and types checked."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise CommandError("--policy needs Python 3.11, or: pip install tomli") from None
    try:
        given = tomllib.loads(Path(path).read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise CommandError(f"{path}: not TOML: {e}") from None
    policies = given.pop("policies", None)
    default = given.pop("default", None)
    if given:
        raise CommandError(f"{path}: {next(iter(given))!r} is neither default nor policies")
    if not isinstance(policies, dict) or not policies:
        raise CommandError(f"{path}: policies must hold at least one, [policies.NAME]")
    if default is not None and default not in policies:
        raise CommandError(f"{path}: default must be the name of a policy, got {default!r}")
    for name, policy in policies.items():
        if not NAME.fullmatch(name):
            raise CommandError(f"{path}: policies.{name!r} must be named by 1 to 64 of A-Z, a-z, "
                               "0-9, - _ .")  # fmt: skip
        if not isinstance(policy, dict):
            raise CommandError(f"{path}: policies.{name} must be a table, [policies.{name}]")
        for key, value in policy.items():
            _check(f"{path}: policies.{name}", key, value)
    return policies


def _check(at: str, key: str, value: object) -> None:
    kind = KEYS.get(key)
    if kind is None:
        raise CommandError(f"{at}: {key!r} is no key of a policy", ", ".join(KEYS))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return
    # To Python True is an integer.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise CommandError(f"{at}: {key} must be {names}, got {type(value).__name__}")
    if isinstance(value, list) and not all(isinstance(word, str) for word in value):
        raise CommandError(f"{at}: {key} must hold words only")
    if key == "consistent" and isinstance(value, str) and value != "call":
        raise CommandError(f'{at}: consistent must be true, false or "call", got {value!r}')


def _mechanism(
    given: dict[str, Any],
    folder: Path,
    spaces: dict[tuple[str | None, bool], Embedding | WordGraph],
) -> Mechanism:
    kind = given.get("mechanism", "tem")
    if kind not in ("tem", "laplace"):
        raise CommandError(f'mechanism must be "tem" or "laplace", got {kind!r}')
    key = (given.get("index"), given.get("verify", True))
    if key not in spaces:
        index, verify = key
        spaces[key] = (Embedding.default() if index is None
                       else open_space(folder / index, verify, False))  # fmt: skip
    space = spaces[key]
    exclude = given.get("exclude", "offensive")
    if isinstance(exclude, str) and exclude != "offensive":
        exclude = None if exclude == "none" else folder / exclude
    own: dict[str, Any] = {name: given[name] for name in ("oov", "skip", "consistent", "pad")
                           if name in given}  # fmt: skip
    own["exclude"] = exclude
    if kind == "laplace":
        wrong = [name for name in ONLY_TEM if name in given]
        if wrong:
            raise CommandError(f'{wrong[0]} goes with mechanism = "tem"')
        if "epsilon" not in given:
            raise CommandError("epsilon is missing")
        return MultivariateLaplace.make(space, given["epsilon"], **own)
    if "gamma" in given and "beta" in given:
        raise CommandError("gamma and beta: give one of them")
    own |= {name: given[name] for name in ("gamma", "beta", "cache_bytes") if name in given}
    if "balance" in given and "cover" not in given:
        raise CommandError("balance goes with cover")
    if "cover" in given:
        own |= {"cover": given["cover"], "balance": given.get("balance")}
    elif (stored := space_cover(space)) is not None:
        own["cover"] = stored
    epsilon, own = recommended(given.get("epsilon"), own, english_tem="index" not in given)
    return Tem.make(space, epsilon, **own)
