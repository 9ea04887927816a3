"""A mechanism as engines carry it: parameters that travel, made into one mechanism a process.

Spark, Ray, datasets and the others run copies of a function in processes of their own. What they
copy is a `Recipe`, some hundred bytes; each process makes the mechanism once, maps the index once,
and checks that it is the file that was meant.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fastdx._core import Embedding, WordGraph, open_space
from fastdx.exceptions import (
    CorruptFileError,
    MissingFileError,
    ParameterError,
    UnknownWordError,
)
from fastdx.mechanisms import MECHANISMS, Mechanism, Tem, from_spec

__all__ = [
    "Recipe",
    "column_names",
    "is_child",
    "no_text",
    "one_thread",
    "privatize_batch",
    "privatize_values",
]

FRONT = 4096
"""Bytes at the start of a file of ours that hold its header and the checksums of all sections."""

MAGIC = b"\x89FDX\r\n\x1a\n"
"""How a file of ours begins."""

KEPT = 16
"""Mechanisms that a process keeps: a service with a policy of its own for each kind of entity needs
several, one that changes ε all day must not keep them all."""


def fingerprint(path: str) -> str:
    """Return what tells a file of ours from others: its size and all its checksums, hashed.

    It finds mix-ups and old copies, not forgery (see ``Tem.load(verify='recompute')``).

    Raises
    ------
    MissingFileError
        There is no such file.
    """
    try:
        with Path(path).open("rb") as file:
            front = file.read(FRONT)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise MissingFileError(f"{path}: there is no such file") from None
    return hashlib.sha256(front + size.to_bytes(8, "little")).hexdigest()[:32]


def is_index(index: Mapping[str, Any]) -> bool:
    """Return whether the words of a Spec are in a file of ours, which processes share."""
    if not {"file"} <= set(index) <= {"file", "fingerprint"}:
        return False
    with Path(index["file"]).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@dataclass(frozen=True)
class Recipe:
    """What makes a mechanism in another process: small, hashable, picklable."""

    spec: str
    """Its Spec as JSON, without the path of the index."""
    index: str | None = field(compare=False)
    """Where the file of words, metric, lists and cover is; None for the built-in words."""
    fingerprint: str | None
    """The file's `fingerprint` when the recipe was written."""
    held: bytes
    """Covers that the Spec knows by their fingerprints only, pickled."""

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
        """Write a recipe, and make the mechanism once, so that what is wrong is said here.

        Parameters
        ----------
        epsilon : float, optional
            ε per unit of distance. Without it, ``Tem.recommended()``.
        mechanism : str, optional
            A name in `fastdx.mechanisms.MECHANISMS`.
        index : str or os.PathLike, optional
            A file that ``Tem.save``, ``Embedding.save`` or ``fastdx index build`` wrote.
        spec : dict, str or os.PathLike, optional
            In place of all others: the mechanism's Spec, or a file of it.
        **parameters
            The mechanism's other parameters.

        Raises
        ------
        ParameterError
            A parameter outside its domain; ``consistent='call'``, since what a call is would be
            the engine's choice.
        MissingFileError, CorruptFileError
            The index.
        """
        import json

        if spec is None:
            made, path = cls._made(epsilon, mechanism, index, parameters)
        elif epsilon is not None or index is not None or parameters or mechanism != "tem":
            raise ParameterError("spec must be given alone: it describes all of the mechanism")
        else:
            made = from_spec(spec)
            words: dict[str, Any] = made.spec["index"]
            path = words["file"] if is_index(words) else None
        if made.consistent == "call":
            raise ParameterError(
                "consistent must not be 'call' here: the engine decides which texts one call gets"
            )
        # Of a file in another format the Spec says how it is read.
        foreign = path is None and "file" in made.spec["index"]
        complete = made.spec if foreign else json.loads(made._complete_spec(False))
        if "law" in complete:
            raise ParameterError("mechanism must be one without a law of its own here, got 'law'")
        held = {name: part for name, part in made._held().items()
                if name != "space" and isinstance(complete.get(name), dict)}  # fmt: skip
        mark = None if path is None else fingerprint(path)
        path = None if path is None else str(Path(path).absolute())
        return cls(json.dumps(complete), path, mark, pickle.dumps(held))

    @staticmethod
    def _made(
        epsilon: float | None,
        mechanism: str,
        index: str | PathLike[str] | None,
        parameters: dict[str, Any],
    ) -> tuple[Mechanism, str | None]:
        if mechanism not in MECHANISMS:
            raise ParameterError(
                f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}"
            )
        kind = MECHANISMS[mechanism]
        if epsilon is None and mechanism == "tem" and index is None:
            return Tem.recommended(**parameters), None
        if index is None:
            space: Embedding | WordGraph = Embedding.default(kind.default_space)
        else:
            space = _space(_Index(fingerprint(os.fspath(index)), os.fspath(index)))
        path = None if index is None else os.fspath(index)
        make: Any = kind
        made: Mechanism = make(space, epsilon, **parameters)
        return made, path

    def mechanism(self, path: str | None = None) -> Mechanism:
        """Return this process's mechanism, made when it is first asked for.

        Parameters
        ----------
        path : str, optional
            Where this process finds the index, if not at `index`.

        Raises
        ------
        MissingFileError, CorruptFileError
            The index is not there, is damaged, or is not the file that the recipe was written with.
        """
        return _mechanism(self if path is None else replace(self, index=path))


@dataclass(frozen=True)
class _Index:
    """A file, the same wherever it lies."""

    fingerprint: str
    path: str = field(compare=False)


@lru_cache(maxsize=KEPT)
def _mechanism(recipe: Recipe) -> Mechanism:
    import json

    space = None
    if recipe.index is not None and recipe.fingerprint is not None:
        space = _space(_Index(recipe.fingerprint, recipe.index))
    return from_spec(json.loads(recipe.spec), space, **pickle.loads(recipe.held))


@lru_cache(maxsize=KEPT)
def _space(index: _Index) -> Embedding | WordGraph:
    """Map a file, once a process."""
    if (found := fingerprint(index.path)) != index.fingerprint:
        raise CorruptFileError(
            f"{index.path} is not the file that was named at the start: its fingerprint is "
            f"{found}, not {index.fingerprint}"
        )
    return open_space(index.path, True, False)


def one_thread() -> None:
    """Let this process, one of many that an engine runs, use one thread, unless told otherwise."""
    os.environ.setdefault("FASTDX_NUM_THREADS", "1")


def is_child() -> bool:
    """Whether multiprocessing, or the fork of it that datasets use, started this process."""
    found = (sys.modules.get(name) for name in ("multiprocessing", "multiprocess"))
    return any(library.parent_process() is not None for library in found if library is not None)


@contextmanager
def no_text() -> Iterator[None]:
    """Let errors, which engines send to other machines and into logs, carry no text with them."""
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


def privatize_batch(mechanism: Mechanism, batch: Any, names: list[str]) -> Any:
    """Privatise columns of a batch: a mapping of names to lists or arrays, or a frame.

    Returns
    -------
    dict or frame
        All columns, as given.
    """
    with no_text():
        if not isinstance(batch, Mapping):
            return mechanism.privatize_frame(batch, names)
        new = dict(batch.items())
        for name in names:
            if name not in new:
                raise ParameterError(f"columns must be of the batch, which has no {name!r}")
            new[name] = privatize_values(mechanism, new[name])
        return new


def privatize_values(mechanism: Mechanism, values: Any) -> Any:
    """Privatise a column; an array of numpy stays one."""
    if not isinstance(values, np.ndarray):
        return mechanism.privatize(values)
    new = np.empty(values.shape, dtype=object)
    new[...] = mechanism.privatize(values.tolist())
    return new
