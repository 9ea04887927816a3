"""Mechanisms that a caller gives as their law, the matrix of output distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastdx._core import Embedding, WordGraph
from fastdx._shared.rounded import up
from fastdx.exceptions import InputTypeError
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self, Unpack

CERTIFIED = 2000
"""The most words for which a law is certified by default."""


class FiniteLaw(Mechanism):
    """A mechanism given as its law (output distribution), with the ε that the law really has.

    The mechanism converts the probabilities of a row to integers and draws from these exactly. The
    largest becomes 2⁹⁹ to 2¹⁰⁰, the others follow in proportion, and no positive probability
    becomes 0. `fastdx.lab.audit.certify` computes ε: the largest log-ratio per unit of the space's
    distance, over all pairs of words and all outputs. If ε is not computed, or is infinite, the
    guarantee says that nothing is protected, whatever the mechanism's authors claim.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words, and the metric of which ε is per unit. A `fastdx.lab.laws.Law` brings its own.
    law : array_like of shape (V, V), callable, or fastdx.lab.laws.Law
        The probability of every output (column) for every word (row), ≥ 0; rows need not sum to 1.
        A callable takes a word's id and returns its row, the same one each time.
    certify : bool, optional
        Whether to compute ε now, which takes V³ steps and 8·V² bytes. By default True for up to
        2,000 words.
    progress : callable, optional
        Called now and then with the number of words done.
    **common
        As for every `Mechanism`.

    Raises
    ------
    ShapeError
        The law does not have the shape (V, V).
    ParameterError
        A number is not a probability, a row has no positive number, or a function returns another
        row the second time.

    Examples
    --------
    >>> from fastdx import Embedding, FiniteLaw
    >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]])
    >>> law = FiniteLaw(e, [[4, 2, 1], [2, 4, 2], [1, 2, 4]])
    >>> round(law.epsilon, 4), round(law.local, 4)      # ln(2) - ln(8/7) per unit, and ln(4)
    (0.8267, 1.3863)
    >>> law.guarantee.bound("a", "b") >= law.epsilon
    True
    >>> from fastdx.lab import laws
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
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        space = getattr(law, "space", None) if space is None else space
        if space is None:
            raise InputTypeError("space is missing: give the words of the law")
        law = rows_of(law)
        own = {"law": law, "certified": certify, "progress": progress}
        made = super().__new__(cls, space, None, **own, **common)
        made._given = law
        return made

    @property
    def local(self) -> float | None:
        """The largest log-ratio of any two words, the ε of local DP; None if not computed."""
        local: float | None = self._details["local"]
        return local

    def _held(self) -> dict[str, Any]:
        # None for a law from a file, which the Spec names.
        return {**super()._held(), "law": self._given}

    @classmethod
    def _from_spec(cls, spec: str, held: dict[str, Any]) -> Self:
        law = rows_of(held.get("law"))
        made = super()._from_spec(spec, {**held, "law": law})
        made._given = law
        return made

    def _shown(self) -> str:
        if self.local is None:
            return "not certified"
        return f"epsilon={up(self.epsilon)}, local={up(self.local)}"


def rows_of(law: Any) -> Any:
    """Return a law as the core reads it: of a Law its matrix, which is read faster and pickled."""
    if not callable(getattr(law, "matrix", None)):
        return law
    return law.matrix() if len(law.space) <= CERTIFIED else law.row
