"""Any mechanism on words that is given as its law."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fastdx._core import Embedding, WordGraph, certify_law
from fastdx._shared.rounded import up
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self, TypeIs, Unpack

__all__ = ["FiniteLaw", "LawLike", "drawn", "is_law"]

CERTIFIED = 2000
"""Words up to which a law is certified unless the caller says otherwise."""


@runtime_checkable
class LawLike(Protocol):
    """A law with the space that it is of, as FiniteLaw reads it: `fastdx.laws.Law` is one."""

    @property
    def space(self) -> Embedding | WordGraph:
        """Words and metric."""

    @property
    def row(self) -> Callable[[int], NDArray[np.float64]]:
        """Gives Pr[y|w] of all words y, from the id of w."""

    def matrix(self) -> NDArray[np.float64]:
        """Return the law of every word."""


class FiniteLaw(Mechanism):
    """A mechanism given as its law, drawn exactly, with the ε that it really has.

    The law's numbers become integers (the largest of a row 2⁹⁹ to 2¹⁰⁰, the others in proportion,
    none that is positive 0), drawn exactly. Its ε is what `fastdx.audit.certify` computes:
    the largest log-ratio per unit of the space's distance over all pairs of words and all outputs.
    Without that computation, or where that is infinite, the guarantee says that nothing is
    protected, whatever the mechanism's authors claim.

    Parameters
    ----------
    space : Embedding or WordGraph
        Words, and the metric that ε is to be per unit of; of a `fastdx.laws.Law` its own if left
        out.
    law : array_like of shape (V, V), scipy.sparse matrix, callable, or fastdx.laws.Law
        The probability of every output (column) for every word (row), or in proportion to it, ≥ 0;
        a callable takes a word's id and returns its row. It must return the same row each time.
    certify : bool, optional
        Whether to compute ε now, which takes V²·V steps and 8·V² bytes; by default for up to 2,000
        words.
    progress : callable, optional
        Called now and then with the number of words done.
    **common
        ``oov``, ``skip``, ``exclude``, ``consistent``, ``seed``, ``pad``, ``cache_bytes``,
        ``threads``: see `fastdx.mechanisms.Common`.

    Raises
    ------
    ShapeError
        A law that is not (V, V).
    ParameterError
        A number that is no probability, a row without any, a function whose rows change.

    Examples
    --------
    >>> from fastdx import Embedding, FiniteLaw
    >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]])
    >>> law = FiniteLaw(e, [[4, 2, 1], [2, 4, 2], [1, 2, 4]])
    >>> round(law.epsilon, 4), round(law.local, 4)      # ln(2) - ln(8/7) per unit, and ln(4)
    (0.8267, 1.3863)
    >>> law.guarantee.bound("a", "b") >= law.epsilon
    True
    >>> from fastdx import laws
    >>> FiniteLaw(law=laws.custext(e, 1.0, k=2, partition=False)).guarantee.epsilon
    inf
    """

    __slots__ = ("_given",)
    _given: Any

    name = "law"

    def __new__(
        cls,
        space: Embedding | WordGraph | None = None,
        law: ArrayLike | Callable[[int], ArrayLike] | Any = None,
        *,
        certify: bool | None = None,
        progress: Callable[[int], object] | None = None,
        embedding: Embedding | None = None,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        if is_law(law):
            space = law.space if space is None and embedding is None else space
            law = law.matrix() if len(law.space) <= CERTIFIED else law.row
        if space is None and embedding is None:
            raise InputTypeError("space is missing: whose words the law is of")
        own = {"law": rows_of(law), "certified": certify, "progress": progress}
        made = cls._new(space, embedding, None, own, common)
        made._given = law
        return made

    def certified(self, progress: Callable[[int], object] | None = None) -> Self:
        """Return the same mechanism with the ε that its law has, computed now.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with the number of words done.

        Raises
        ------
        TooLargeError
            More than 8 GiB of laws.
        """
        return self._with_law(self._around(certify_law(self, progress)))

    @property
    def local(self) -> float | None:
        """The largest log-ratio of any two words, the ε of local DP; None where not computed."""
        local: float | None = self._details["local"]
        return local

    def with_epsilon(self, epsilon: float) -> Self:
        """Raise ParameterError: a law has the ε that it has."""
        return self._with_law(super().with_epsilon(epsilon))

    def _with_law(self, other: Self) -> Self:
        other._given = self._given
        return other

    def _held(self) -> dict[str, Any]:
        # A law that came from a file stays there.
        return {**super()._held(), "law": self._given}

    @classmethod
    def _from_spec(cls, spec: str, held: dict[str, Any]) -> Self:
        law = held.get("law")
        made = super()._from_spec(spec, {**held, "law": rows_of(law)})
        made._given = law
        return made

    def __eq__(self, other: object) -> bool:
        """Whether it has the same `spec`, and the same law where that is a function."""
        same = super().__eq__(other)
        if same is not True or "fingerprint" in self.spec["law"]:
            return same
        return isinstance(other, FiniteLaw) and self._given is other._given

    __hash__ = Mechanism.__hash__

    def _shown(self) -> str:
        if self.local is None:
            return "not certified"
        return f"epsilon={up(self.epsilon)}, local={up(self.local)}"


def rows_of(law: Any) -> Any:
    """Return a law as the core reads it: a sparse matrix as (indptr, indices, data)."""
    if is_law(law):
        # A matrix is read faster, and pickled.
        law = law.matrix() if len(law.space) <= CERTIFIED else law.row
    if not hasattr(law, "tocsr"):
        return law
    rows = law.tocsr()
    if rows.shape != (rows.shape[0],) * 2:
        raise ParameterError(f"law must be square, got shape {rows.shape}")
    return rows.indptr.tolist(), rows.indices, rows.data.astype("float64")


def is_law(given: object) -> TypeIs[LawLike]:
    """Return whether it is a law as `fastdx.laws` has them."""
    return isinstance(given, LawLike)


def drawn(given: Mechanism | LawLike) -> Mechanism:
    """Return the mechanism itself, or the one that draws a law, not certified."""
    return FiniteLaw(law=given, certify=False) if is_law(given) else given
