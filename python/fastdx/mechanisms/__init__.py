"""Word mechanisms: their table by name, and `from_spec`, which makes one from its description."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from fastdx._core import Cover, Embedding, MechanismCore, NgramPrior, WordGraph, read_spec
from fastdx._selection import PrivateSpans, Select, improbable, rare
from fastdx._types import Unchanged
from fastdx.exceptions import InputTypeError
from fastdx.mechanisms.base import Common, Mechanism
from fastdx.mechanisms.finite_law import FiniteLaw
from fastdx.mechanisms.neighbor_response import NeighborResponse
from fastdx.mechanisms.noise import HyperbolicLaplace, Mahalanobis, MultivariateLaplace, Vickrey
from fastdx.mechanisms.tem import Tem

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from fastdx._types import LanguageModel

__all__ = [
    "MECHANISMS",
    "Common",
    "FiniteLaw",
    "HyperbolicLaplace",
    "Mahalanobis",
    "Mechanism",
    "MultivariateLaplace",
    "NeighborResponse",
    "PrivateSpans",
    "Select",
    "Tem",
    "Unchanged",
    "Vickrey",
    "from_spec",
    "improbable",
    "rare",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    "tem": Tem,
    "laplace": MultivariateLaplace,
    "hyperbolic": HyperbolicLaplace,
    "mahalanobis": Mahalanobis,
    "response": NeighborResponse,
    "vickrey": Vickrey,
}
"""Every word mechanism by name; the command and the tests iterate over it."""
KINDS: dict[str, type[Mechanism]] = {**MECHANISMS, "law": FiniteLaw}
"""Every mechanism that a Spec can describe, by its name."""


def _spec_json(spec: Mapping[str, Any] | str | PathLike[str]) -> str:
    """Return a Spec as JSON, from a dict or a file (JSON or TOML)."""
    if not isinstance(spec, Mapping):
        return read_spec(spec)
    import json

    try:
        return json.dumps(dict(spec))
    except (TypeError, ValueError) as e:
        raise InputTypeError(f"spec must hold what JSON can hold: {e}") from None


def from_spec(
    spec: Mapping[str, Any] | str | PathLike[str],
    space: Embedding | WordGraph | None = None,
    *,
    cover: Cover | None = None,
    remap: Cover | None = None,
    law: ArrayLike | Callable[[int], ArrayLike] | Any = None,
    language: str | PathLike[str] | ArrayLike | LanguageModel | NgramPrior | None = None,
    progress: Callable[[int], object] | None = None,
) -> Mechanism:
    """Make the mechanism that a Spec describes, with the same law and the same guarantee.

    ``mechanism.spec`` is such a description. The policies of the command and of the service are
    Specs too; docs/reference/spec.md lists the keys.

    Parameters
    ----------
    spec : dict, str or os.PathLike
        The description, or the path of a JSON or TOML file with it. Paths in the file are relative
        to its folder. A Spec without ε is the recommended policy.
    space : Embedding or WordGraph, optional
        The words, if they existed only in memory. The Spec then holds their fingerprint, which is
        checked.
    cover, remap : Cover, optional
        The cover or the remap, if it existed only in memory.
    language : array_like of float, shape (V,), a model, str or os.PathLike, optional
        The base measure of a Tem, if it existed only in memory or the Spec names no file of it: see
        `Tem`.
    law : optional
        The law of mechanism ``law``, if it existed only in memory: see `FiniteLaw`.
    progress : callable, optional
        Called now and then while a certificate is computed.

    Raises
    ------
    ParameterError
        A key is unknown, a value lies outside its domain, a fingerprint differs, or an in-memory
        part is not given.

    Examples
    --------
    >>> from fastdx import from_spec
    >>> madlib = from_spec({"mechanism": "laplace", "epsilon": 8.0})
    >>> madlib.epsilon, madlib.spec["index"]["builtin"]
    (8.0, 'english')
    """
    core = _spec_json(spec)
    held = {"space": space, "cover": cover, "remap": remap, "law": law, "language": language,
            "progress": progress}  # fmt: skip
    return KINDS[MechanismCore._kind_of(core)]._from_spec(core, held)
