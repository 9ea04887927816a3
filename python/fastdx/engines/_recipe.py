"""Recipes: the parameters of a mechanism that engines send to their processes.

Spark, Ray, datasets and other engines run copies of a function in processes of their own. They copy
a `Recipe` of a few hundred bytes. Each process makes the mechanism once, maps the index once, and
checks that the index is the right file.
"""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from fastdx._core import open_space
from fastdx._shared.checks import one_of
from fastdx._shared.columns import column_names
from fastdx.exceptions import CorruptFileError, ParameterError, UnknownWordError
from fastdx.mechanisms import MECHANISMS, Mechanism, Tem, from_spec

__all__ = ["PrivateColumns", "Recipe", "no_text"]

CACHED = 16
"""The most mechanisms in a process's cache. A service with one policy per kind of entity needs
several; a service that keeps changing ε must not keep them all."""


@dataclass(frozen=True)
class Recipe:
    """A small, hashable, picklable description from which a process makes a mechanism."""

    spec: str
    """The complete Spec as JSON, without paths."""
    held: bytes
    """The pickled words, and the parts of which the Spec has only fingerprints. Words in a fastdx
    file are pickled as its path and fingerprint."""
    index: str | None
    """The path of this file in this process, if there is one."""
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
        space = None if index is None else open_space(index, True, True)
        if spec is not None:
            if epsilon is not None or index is not None or parameters or mechanism != "tem":
                raise ParameterError("spec must be given alone: it describes all of the mechanism")
            made = from_spec(spec)
            words = made.spec["index"]
            if words.keys() == {"file", "fingerprint"}:
                index = words["file"]
                with suppress(CorruptFileError):  # it has another format
                    space = open_space(index, True, True)
                    made = from_spec(spec, space)
        elif epsilon is None and index is None and mechanism == "tem":
            made = Tem.recommended(**parameters)
        else:
            kind: Any = MECHANISMS[mechanism]
            made = kind(space, epsilon, **parameters)
        if made.consistent == "call":
            raise ParameterError(
                "consistent must not be 'call' here: the engine decides which texts one call gets"
            )
        complete = made._complete_spec(False)
        described = json.loads(complete)
        if "law" in described:
            raise ParameterError("mechanism must be one without a law of its own here, got 'law'")
        held = {**made._held(), "language": made._language()}
        held = {name: part for name, part in held.items() if isinstance(described.get(name), dict)}
        path = None if space is None or index is None else str(Path(index).absolute())
        return cls(complete, pickle.dumps({**held, "space": space or made.space}), path)

    def mechanism(self) -> Mechanism:
        """Return this process's mechanism, which the first call makes.

        A worker uses one thread, unless FASTDX_NUM_THREADS is set: engines run one worker per core.
        The index must be the file that the recipe was made of.
        """
        if self.maker != os.getpid():
            os.environ.setdefault("FASTDX_NUM_THREADS", "1")
        return _mechanism(self)

    def privatize(self, texts: Any) -> Any:
        """Privatise a text or a column; no error shows text."""
        with no_text():
            return self.mechanism().privatize(texts)


@lru_cache(maxsize=CACHED)
def _mechanism(recipe: Recipe) -> Mechanism:
    return from_spec(json.loads(recipe.spec), **_Held(recipe).load())


class _Held(pickle.Unpickler):
    """Unpickles the parts of a recipe; words in a file come from its path in this process."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(io.BytesIO(recipe.held))
        self._index = recipe.index

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if found is open_space:
            return lambda _, *known: open_space(self._index, *known)
        return found


@contextmanager
def no_text() -> Iterator[None]:
    """Remove text from errors, because engines send them to other machines and into logs."""
    try:
        yield
    except UnknownWordError as error:
        error.word = None
        raise


class PrivateColumns:
    """Replaces the words of columns of batches: mappings of names to lists or arrays, or frames.

    In frames of Arrow and polars, columns may also be fields of structs. Each process makes the
    mechanism of the recipe once.
    """

    def __init__(self, columns: str | Iterable[str], recipe: Recipe) -> None:
        self.names, self.recipe = column_names(columns), recipe

    def __call__(self, batch: Any) -> Any:
        """Return the batch, in its form, with the new columns in their places."""
        if not isinstance(batch, Mapping):
            with no_text():
                return self.recipe.mechanism().privatize_frame(batch, self.names)
        new = dict(batch.items())
        for name in self.names:
            if name not in new:
                raise ParameterError(f"columns must be of the batch, which has no {name!r}")
            new[name] = self.recipe.privatize(new[name])
        return new
