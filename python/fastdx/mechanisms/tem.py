"""TEM, the truncated exponential mechanism (Carvalho, Vasiloudis, Feyisetan 2021)."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

from fastdx._core import (
    RECOMMENDED_BALANCE,
    RECOMMENDED_COVER,
    RECOMMENDED_EPSILON,
    Cover,
    Embedding,
    MechanismCore,
    WordGraph,
    check_index,
    mechanism_cover,
    open_space,
    save_space,
    tem_build_lists,
)
from fastdx._shared.rounded import up
from fastdx.exceptions import ParameterError
from fastdx.mechanisms.base import Common, Mechanism, Option

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Tem"]

RECOMPUTED = 1000
"""Words whose lists ``verify='recompute'`` computes again."""


class Tem(Mechanism):
    """TEM, the truncated exponential mechanism (Carvalho et al. 2021).

    Releases y with probability ∝ exp(-(ε/2)·min(d(w,y), γ)): ε·d-private for every metric. With a
    `cover`, d(w,y) is the distance from w to the nearest of the words that y stands for: the same
    proof, and no output likelier than 1/k (docs/covers.md).

    Parameters
    ----------
    space : Embedding or WordGraph, optional
        Words and metric; the default English embedding if left out. ``embedding=`` is an alias.
    epsilon : float
        ε per unit of distance, positive.
    gamma : float, optional
        Distance beyond which all words are alike, ≥ 0, may be infinite. By default from `beta`.
    beta : float, optional
        With no `gamma`: words beyond γ are released with probability at most β (Theorem 3).
    cover : Cover or int, optional
        What outputs stand for; an int k makes ``Cover.nearest(space, k)``. By default every output
        stands for itself: Tem as published.
    balance : float, optional
        With an int `cover`: outputs of like frequency too, ``Cover.balanced`` with this weight (try
        0.1). The vocabulary is in order of frequency.
    sampler : str, optional
        'exact' (default): integer weights and exact randomness; 'gumbel': the paper's, for
        comparison.
    **common
        ``oov``, ``skip``, ``consistent``, ``seed``, ``pad``: see `fastdx.mechanisms.Common`.

    Raises
    ------
    ParameterError
        A parameter outside its domain.

    Examples
    --------
    >>> from fastdx import Tem
    >>> tem = Tem(epsilon=2.25, cover=40, balance=0.1)
    >>> law = tem.probabilities("coffee")
    >>> law.shape, round(float(law.sum()), 9)
    ((20000,), 1.0)
    """

    __slots__ = ()

    name = "tem"
    options: ClassVar[tuple[Option, ...]] = (
        Option("gamma", "distance beyond which all words are alike"),
        Option("beta", "sets gamma by Theorem 3 (default 0.001)"),
    )

    def __new__(
        cls,
        space: Embedding | WordGraph | None = None,
        epsilon: float | None = None,
        *,
        gamma: float | None = None,
        beta: float | None = None,
        cover: Cover | SupportsIndex | None = None,
        balance: float | None = None,
        sampler: str = "exact",
        embedding: Embedding | None = None,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        own = {"gamma": gamma, "beta": beta, "cover": cover, "balance": balance, "sampler": sampler}
        return cls._new(space, embedding, epsilon, own, common)

    @classmethod
    def certified(
        cls,
        space: Embedding | WordGraph | None = None,
        epsilon: float | None = None,
        *,
        gamma: float | None = None,
        beta: float | None = None,
        cover: Cover | SupportsIndex | None = None,
        balance: float | None = None,
        progress: Callable[[int], object] | None = None,
        embedding: Embedding | None = None,
        **common: Unpack[Common],
    ) -> Self:
        """Make a Tem whose *certified* ε is the one given.

        That is the largest nominal ε whose certificate is at most that (see
        ``fastdx.audit.certify``), so the same proof with less noise. `epsilon` and `guarantee` are
        the certified ones, `nominal` is what the law is made with. The certificate is saved with
        the mechanism. It takes the embedding to be public.

        Parameters
        ----------
        space : Embedding or WordGraph
            Words and metric.
        epsilon : float
            The ε to certify, per unit of distance.
        gamma, beta, cover, balance, **common : optional
            As for the constructor; γ from β belongs to the nominal ε.
        progress : callable, optional
            Called now and then with the number of words done, over about a dozen passes.

        Examples
        --------
        >>> from fastdx import Embedding, Tem
        >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]])
        >>> tem = Tem.certified(e, 0.5)
        >>> tem.epsilon <= 0.5 < tem.nominal
        True
        """
        own = {
            "gamma": gamma,
            "beta": beta,
            "cover": cover,
            "balance": balance,
            "certified": True,
            "progress": progress,
        }
        return cls._new(space, embedding, epsilon, own, common)

    @classmethod
    def recommended(cls, **common: Unpack[Common]) -> Self:
        """Make the policy that the documents use, on the built-in English words.

        A balanced cover, offensive words excluded; its parameters are chosen by what an attacker
        names in sentences (docs/explanation/what-you-keep.md). Without ``--epsilon``, ``fastdx
        privatize`` takes it.

        Parameters
        ----------
        **common : optional
            As for the constructor. ``exclude`` is ``"offensive"`` unless given.

        Examples
        --------
        >>> from fastdx import Tem
        >>> tem = Tem.recommended()
        >>> tem.unchanged.warning is None
        True
        """
        own = {"cover": RECOMMENDED_COVER, "balance": RECOMMENDED_BALANCE}
        parameters: dict[str, Any] = {"exclude": "offensive", **own, **common}
        return cls(epsilon=RECOMMENDED_EPSILON, **parameters)

    @property
    def nominal(self) -> float:
        """The ε that the law is made with: `epsilon`, unless a certificate proves a smaller one."""
        return float(self._details["nominal"])

    @property
    def gamma(self) -> float:
        """Distance beyond which all words are alike."""
        return float(self._details["gamma"])

    @property
    def sampler(self) -> str:
        """The sampler: 'exact' or 'gumbel'."""
        return str(self._details["sampler"])

    @property
    def cached_bytes(self) -> int:
        """Bytes of lists and laws that it and its copies at other ε keep now."""
        return int(self._details["cached_bytes"])

    @property
    def cover(self) -> Cover | None:
        """What its outputs stand for; None where each stands for itself and none is excluded."""
        return mechanism_cover(self)

    @property
    def lists_k(self) -> int | None:
        """How many neighbours of a word are stored; None where no such lists are.

        Without stored lists, lists are made as words come.
        """
        k: int | None = self._details["lists_k"]
        return k

    @property
    def lists_radius(self) -> float | None:
        """The distance within which all neighbours are stored; None where no such lists are."""
        radius: float | None = self._details["lists_radius"]
        return radius

    def build_lists(
        self,
        k: int | None = None,
        *,
        lists: str = "nearest",
        memory: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Self:
        """Return the same mechanism with the exact lists of every word's k nearest neighbours.

        `save` then stores them. The output law is the same with and without lists.

        Parameters
        ----------
        k : int, optional
            Neighbours a word; by default √V, between 256 and 1024.
        lists : str, optional
            'nearest' (default): the k nearest words. 'gamma': all words within γ, as the paper
            has it; where Tem is useful, that is nearly every word.
        memory : int, optional
            Bytes the lists may take (default 8 GiB), checked before anything is allocated.
        progress : callable, optional
            Called now and then with the number of words done.

        Raises
        ------
        ParameterError
            `k` outside 1..V, or given with lists='gamma'; a WordGraph, which needs no lists.
        TooLargeError
            More than `memory` bytes; says how many.
        """
        return self._around(tem_build_lists(self, k, lists, memory, progress))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the words, their metric, and lists, cover and certificates, if any, to one file.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        save_space(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        epsilon: float,
        *,
        verify: bool | str | None = True,
        pickle_by: str = "reference",
        **parameters: Any,
    ) -> Self:
        """Make a Tem on a file that `save` or ``fastdx index build`` wrote, with its cover, if any.

        The file is mapped without copying and shared by all processes that open it.

        Parameters
        ----------
        path : str or os.PathLike
            The file.
        epsilon : float
            ε per unit of distance.
        verify : bool or 'recompute', optional
            True (default): check every checksum, which finds damage. False: opening takes
            milliseconds, and no certificate is claimed. 'recompute': certify again and compute
            the lists of 1,000 random words again, which finds forgery, for files from others.
        pickle_by : 'reference' or 'value', optional
            'reference' (default): pickled as the file's path and fingerprint, so that processes
            share the file; unpickling fails where the file is missing or is another one. A file
            that was verified is verified again, unless it has not changed since. 'value': the
            words and vectors themselves are pickled.
        **parameters
            As for the constructor.

        Raises
        ------
        CorruptFileError
            A damaged, truncated, extended or foreign file; with 'recompute', a forged one.
        """
        if verify is None:
            verify = True
        if not isinstance(verify, bool) and verify != "recompute":
            raise ParameterError(f"verify must be True, False or 'recompute', got {verify!r}")
        if pickle_by not in ("reference", "value"):
            raise ParameterError(f"pickle_by must be 'reference' or 'value', got {pickle_by!r}")
        space = open_space(path, bool(verify), pickle_by == "reference")
        if verify == "recompute":
            check_index(os.fspath(path), RECOMPUTED)
        own = {"index": os.fspath(path), **parameters}
        made: Self = MechanismCore.__new__(cls, cls.name, space, {"epsilon": epsilon, **own})
        return made

    def _shown(self) -> str:
        details = self._details
        certified = details["certified"]
        shown = "" if certified is None else f", certified {up(certified)}"
        shown += f", gamma={details['gamma']:.6f}"
        if (cover := self.cover) is not None:
            shown += f", cover={cover!r}"
        return f"epsilon={up(details['nominal'])}{shown}"
