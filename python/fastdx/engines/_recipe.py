"""Recipes: the parameters of a mechanism that engines send to their processes.

Spark, Ray, datasets and other engines run copies of a function in processes of their own. They copy
a `Recipe` of a few hundred bytes. Each process makes the mechanism once, maps the index once, and
checks that the index is the right file.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fastdx._core import Embedding, WordGraph, open_space
from fastdx._shared.checks import one_of
from fastdx.exceptions import CorruptFileError, MissingFileError, ParameterError, UnknownWordError
from fastdx.mechanisms import MECHANISMS, Mechanism, Tem, from_spec

__all__ = ["PrivateColumns", "Recipe", "column_names", "no_text", "privatize_values"]

FRONT = 4096
"""The number of first bytes of a fastdx file, with its header and the checksums of all sections."""

MAGIC = b"\x89FDX\r\n\x1a\n"
"""The first bytes of a fastdx file."""

CACHED = 16
"""The most mechanisms in a process's cache. A service with one policy per kind of entity needs
several; a service that keeps changing ε must not keep them all."""


def fingerprint(path: str) -> str:
    """Return a hash of the size and all checksums of a fastdx file.

    It finds mix-ups and old copies, but not forgery (see ``fastdx index check``).
    """
    try:
        with Path(path).open("rb") as file:
            front = file.read(FRONT)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise MissingFileError(f"{path}: there is no such file") from None
    return hashlib.sha256(front + size.to_bytes(8, "little")).hexdigest()[:32]


def is_index(index: Mapping[str, Any]) -> bool:
    """Return whether the words of a Spec are in a fastdx file, which processes can share."""
    if not {"file"} <= set(index) <= {"file", "fingerprint"}:
        return False
    with Path(index["file"]).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@dataclass(frozen=True)
class Recipe:
    """A small, hashable, picklable description from which a process makes a mechanism."""

    spec: str
    """The Spec as JSON, without the path of the index."""
    index: str | None = field(compare=False)
    """The path of the file of words, metric, lists and cover; None for the built-in words."""
    fingerprint: str | None
    """The file's `fingerprint` when the recipe was made."""
    held: bytes
    """The pickled covers of which the Spec has only fingerprints."""
    maker: int = field(default_factory=os.getpid, compare=False)
    """The process that made the recipe; all others are workers of an engine."""

    @classmethod
    def of(
        cls,
        epsilon: float | None = None,
        mechanism: str = "tem",
        index: str | PathLike[str] | None = None,
        *,
        spec: Mapping[str, Any] | str | PathLike[str] | None = None,
        **parameters: Any,
    ) -> Recipe:
        """Make a recipe of the parameters in ``docs/engines.md``, or of a Spec alone.

        It makes the mechanism once, so that errors are raised here. ``consistent='call'`` is one:
        the engine would decide which texts one call gets.
        """
        made: Mechanism
        one_of("mechanism", mechanism, MECHANISMS)
        if spec is not None:
            if epsilon is not None or index is not None or parameters or mechanism != "tem":
                raise ParameterError("spec must be given alone: it describes all of the mechanism")
            made = from_spec(spec)
        elif epsilon is None and index is None and mechanism == "tem":
            made = Tem.recommended(**parameters)
        else:
            kind: Any = MECHANISMS[mechanism]
            if index is None:
                space: Embedding | WordGraph = Embedding.default(kind.default_space)
            else:
                space = _space(os.fspath(index), fingerprint(os.fspath(index)))
            made = kind(space, epsilon, **parameters)
        if made.consistent == "call":
            raise ParameterError(
                "consistent must not be 'call' here: the engine decides which texts one call gets"
            )
        words: dict[str, Any] = made.spec["index"]
        if index is None and is_index(words):
            index = words["file"]
        path = None if index is None else str(Path(index).absolute())
        # For a file in another format the Spec keeps the parameters of reading it.
        foreign = path is None and "file" in words
        complete = made.spec if foreign else json.loads(made._complete_spec(False))
        if "law" in complete:
            raise ParameterError("mechanism must be one without a law of its own here, got 'law'")
        held = {name: part for name, part in {**made._held(), "language": made._language()}.items()
                if name != "space" and isinstance(complete.get(name), dict)}  # fmt: skip
        mark = None if path is None else fingerprint(path)
        return cls(json.dumps(complete), path, mark, pickle.dumps(held))

    def mechanism(self, path: str | None = None) -> Mechanism:
        """Return this process's mechanism, which the first call makes.

        A worker uses one thread, unless FASTDX_NUM_THREADS is set: engines run one worker per core.
        `path` is that of the index for this process, if it is not `index`. The index must be the
        file of the recipe.
        """
        if self.maker != os.getpid():
            os.environ.setdefault("FASTDX_NUM_THREADS", "1")
        return _mechanism(self if path is None else replace(self, index=path))


@lru_cache(maxsize=CACHED)
def _mechanism(recipe: Recipe) -> Mechanism:
    space = None
    if recipe.index is not None and recipe.fingerprint is not None:
        space = _space(recipe.index, recipe.fingerprint)
    return from_spec(json.loads(recipe.spec), space, **pickle.loads(recipe.held))


@lru_cache(maxsize=CACHED)
def _space(path: str, named: str) -> Embedding | WordGraph:
    """Map a file with the fingerprint that it was named with, once per process."""
    if (found := fingerprint(path)) != named:
        raise CorruptFileError(
            f"{path} is not the file that was named at the start: its fingerprint is {found}, not "
            f"{named}"
        )
    return open_space(path, True, False)


@contextmanager
def no_text() -> Iterator[None]:
    """Remove text from errors, because engines send them to other machines and into logs."""
    try:
        yield
    except UnknownWordError as error:
        error.word = None
        raise


def column_names(columns: str | Iterable[str]) -> list[str]:
    """Return the names of columns as a list that is not empty."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ParameterError("columns must be at least one, got none")
    return names


def privatize_values(mechanism: Mechanism, values: Any) -> Any:
    """Privatise a column; a numpy array stays a numpy array."""
    if not isinstance(values, np.ndarray):
        return mechanism.privatize(values)
    new = np.empty(values.shape, dtype=object)
    new[...] = mechanism.privatize(values.tolist())
    return new


class PrivateColumns:
    """Replaces the words of columns of batches: mappings of names to lists or arrays, or frames.

    In frames of Arrow and polars, columns may also be fields of structs. Each process makes the
    mechanism of the recipe once.
    """

    def __init__(self, columns: str | Iterable[str], recipe: Recipe) -> None:
        self.names, self.recipe = column_names(columns), recipe

    def __call__(self, batch: Any) -> Any:
        """Return the batch, in its form, with the new columns in their places."""
        mechanism = self.recipe.mechanism()
        with no_text():
            if not isinstance(batch, Mapping):
                return mechanism.privatize_frame(batch, self.names)
            new = dict(batch.items())
            for name in self.names:
                if name not in new:
                    raise ParameterError(f"columns must be of the batch, which has no {name!r}")
                new[name] = privatize_values(mechanism, new[name])
            return new
