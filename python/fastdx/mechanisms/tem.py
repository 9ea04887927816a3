"""TEM, the truncated exponential mechanism."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any, SupportsIndex

from fastdx import _core
from fastdx._core import Cover, Embedding, NgramPrior, WordGraph
from fastdx._shared.rounded import up
from fastdx.mechanisms.base import Common, Mechanism

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self, Unpack

    from fastdx._types import LanguageModel


class Tem(Mechanism):
    """TEM, the truncated exponential mechanism (Carvalho, Vasiloudis, Feyisetan 2021).

    Releases y with probability ∝ exp(-(ε/2)·min(d(w,y), γ)), which is ε·d-private for every metric.
    With a `cover`, d(w,y) is the distance from w to the nearest word that y stands for. ε·d still
    holds, and no output is likelier than 1/k. With a `language`, the probability is also ∝ Q(y), a
    public weight of y that is the same for every w. It cancels in every ratio, so ε·d holds for any
    Q. Q may go by what was released before (docs/research/histories.md): then the words of a text
    are drawn in order.

    Parameters
    ----------
    space, epsilon, **common
        As for every `Mechanism`.
    gamma : float, optional
        γ, the distance beyond which all words are equally likely, ≥ 0; may be infinite. By default
        computed from `beta`.
    beta : float, optional
        Used if `gamma` is not given: words beyond γ are released with probability at most β
        (Theorem 3, where words count by their Q).
    language : str, os.PathLike, array_like of float (shape (V,)), or a model, optional
        Q, the base measure. 'uniform' (default) is Tem as published. 'rank' is 1/(rank + 2.7), by
        the order of the words. 'frequency' is how often words are written: in English if all words
        are built in, else by rank. A path names a file of lines of a word and a count; an array has
        a positive weight for each word, within a factor of 1e9. Q must be public: never count the
        texts to protect.

        Behind what was released before: 'english' is the built-in bigrams, for words that are built
        in; a `fastdx.channel.NgramPrior`, or the path of a saved one; any object with
        ``log_next(prefix)``, which returns ln P of every word, shape (V,), behind the released
        words of the sentence so far, a tuple of str, with None for what is no word of the space. It
        is asked once for each prefix, as long as there is room, perhaps by several threads; what it
        raises is raised. There is no one law of a word then: `unchanged`, `bits`, `sample`,
        channels, certificates and `remap` are refused.
    cover : Cover or int, optional
        The words that each output stands for; an int k makes ``Cover.nearest(space, k)``. By
        default every output stands for itself, which is Tem as published.
    balance : float, optional
        For an int `cover`: takes ``Cover.balanced`` with this weight (try 0.1), which also prefers
        outputs of similar frequency. The vocabulary must be in order of frequency.
    certified : bool, optional
        Whether `epsilon` is the *certified* ε: the nominal ε is then the largest one whose
        certificate is at most `epsilon` (see ``fastdx.lab.audit.certify``). The guarantee is as
        strong, with less noise. `epsilon` and `guarantee` are the certified ones; `nominal` is the
        ε in the law's formula, for which a γ from `beta` is computed. `save` stores the certificate
        with the mechanism. It assumes that the embedding is public. A `language` that goes by what
        was released before has no certificate.
    progress : callable, optional
        Called now and then with the number of words certified, over about a dozen passes.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> tem = Tem.recommended()
    >>> law = tem.probabilities("coffee")
    >>> law.shape, round(float(law.sum()), 9)
    ((20000,), 1.0)
    >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [3.0]])
    >>> tem = Tem(e, 0.5, certified=True)
    >>> tem.epsilon <= 0.5 < tem.nominal
    True
    """

    __slots__ = ()

    name = "tem"

    def __new__(
        cls,
        space: Embedding | WordGraph | None = None,
        epsilon: float | None = None,
        *,
        gamma: float | None = None,
        beta: float | None = None,
        cover: Cover | SupportsIndex | None = None,
        balance: float | None = None,
        language: str | PathLike[str] | ArrayLike | LanguageModel | NgramPrior | None = None,
        certified: bool = False,
        progress: Callable[[int], object] | None = None,
        **common: Unpack[Common],
    ) -> Self:
        """Make the mechanism."""
        return super().__new__(
            cls,
            space,
            epsilon,
            gamma=gamma,
            beta=beta,
            cover=cover,
            balance=balance,
            language=language,
            certified=certified or None,
            progress=progress,
            **common,
        )

    @classmethod
    def recommended(cls, *, epsilon: float = _core.RECOMMENDED_EPSILON, **parameters: Any) -> Self:
        """Make the policy that documents and ``fastdx privatize`` use, on built-in English words.

        Attacks on sentences decided its parameters (docs/research/what-you-keep.md). With others it
        is no longer the recommended one.

        Parameters
        ----------
        epsilon, **parameters : optional
            As for the constructor. ``language`` is ``"rank"`` and ``exclude`` is ``"offensive"``
            unless given.

        Examples
        --------
        >>> from fastdx import Tem
        >>> tem = Tem.recommended()
        >>> tem.unchanged.warning is None
        True
        >>> Tem.recommended(epsilon=3.0) == tem.with_epsilon(3.0)
        True
        """
        return cls(epsilon=epsilon, **{"language": "rank", "exclude": "offensive", **parameters})

    def probabilities(
        self, word: str, after: str | Iterable[str] | None = None
    ) -> NDArray[np.float64]:
        """Return the exact law of the output for a word: float64, shape (V,).

        Parameters
        ----------
        word : str
            A word of the vocabulary.
        after : str or iterable of str, optional
            What was released before: a text, or the words of a sentence. Needed for a `language`
            that goes by it; any other law is the same after everything.

        Raises
        ------
        UnknownWordError
            The word is not in the vocabulary.
        ParameterError
            There is no one law of a word, and `after` is not given.

        Examples
        --------
        >>> from fastdx import Tem
        >>> tem = Tem(epsilon=4.0, language="english")
        >>> after = tem.probabilities("coffee", after="I drank a cup of")
        >>> [tem.space.words[i] for i in after.argsort()[:-4:-1]]
        ['coffee', 'the', 'a']
        """
        if after is None:
            return super().probabilities(word)
        return _core.tem_probabilities_after(self, word, after)

    @property
    def gamma(self) -> float:
        """The distance beyond which all words are equally likely."""
        return float(self._details["gamma"])

    @property
    def base(self) -> NDArray[np.uint32] | None:
        """Q of every word, shape (V,): whole numbers, as the law has them; None if all are alike.

        It is that of `language`, or a cover's weights; words that are never released have 1. Of a
        `language` that goes by what was released before, it is the part that is always there.

        Examples
        --------
        >>> from fastdx import Embedding, Tem
        >>> e = Embedding(["the", "tea", "teapot"], [[0.0], [1.0], [2.0]])
        >>> tem = Tem(e, 1.0, language=[1000, 10, 1])
        >>> tem.probabilities("teapot").round(3).tolist()
        [0.981, 0.016, 0.003]
        >>> (tem.base / tem.base.sum()).round(3).tolist()
        [0.989, 0.01, 0.001]
        """
        return _core.tem_base(self)

    @property
    def cached_bytes(self) -> int:
        """Bytes of lists and laws that the mechanism and its copies at other ε keep now."""
        return int(self._details["cached_bytes"])

    @property
    def cover(self) -> Cover | None:
        """The words that outputs stand for; None if each stands for itself and none is excluded."""
        cover: Cover | None = self._details["cover"]
        return cover

    @property
    def lists_k(self) -> int | None:
        """The number of neighbours stored per word; None without lists.

        Without stored lists, the mechanism makes the list of a word when the word first occurs.
        """
        k: int | None = self._details["lists_k"]
        return k

    def build_lists(
        self,
        k: int | None = None,
        *,
        memory: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Self:
        """Return a copy with exact lists of every word's k nearest neighbours.

        `save` then stores the lists. The law is the same with and without them.

        Parameters
        ----------
        k : int, optional
            Neighbours per word; by default √V, but at least 256 and at most 1024.
        memory : int, optional
            The most bytes for the lists (default 8 GiB), checked before anything is allocated.
        progress : callable, optional
            Called now and then with the number of words done.

        Raises
        ------
        ParameterError
            `k` lies outside 1..V, or the space is a WordGraph, which needs no lists.
        TooLargeError
            The lists would take more than `memory` bytes.
        """
        return self._around(_core.tem_build_lists(self, k, memory, progress))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the words, their metric, and any lists, cover and certificates to one file."""
        _core.tem_save(self, path)

    @classmethod
    def load(
        cls, path: str | PathLike[str], epsilon: float, *, verify: bool = True, **parameters: Any
    ) -> Self:
        """Make a Tem on a file from `save` or ``fastdx index build``, with its cover if it has one.

        The words that it excludes stay excluded, unless a `cover` is given. The file is
        memory-mapped without copying; all processes that open it share it. Pickles hold its path
        and fingerprint: unpickling fails if the file is missing or is another one, and verifies a
        verified file again, once in a process.

        Parameters
        ----------
        path : str or os.PathLike
            The file.
        verify : bool, optional
            True (default) checks every checksum, which finds damage, not forgery: for a file from
            others, ``fastdx index check`` computes it again. False opens the file in milliseconds
            and claims no certificate.
        epsilon, **parameters
            As for the constructor.

        Raises
        ------
        CorruptFileError
            The file is damaged, truncated, extended or no fastdx file.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from fastdx import Tem
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "english.index"
        >>> Tem.recommended().save(path)
        >>> Tem.load(path, 2.6, language="rank").spec["exclude"]
        'offensive'
        """
        space = _core.open_space(path, verify)
        return super().__new__(cls, space, epsilon, index=os.fspath(path), **parameters)

    def _shown(self) -> str:
        details = self._details
        certified = details["certified"]
        shown = "" if certified is None else f", certified {up(certified)}"
        shown += f", gamma={details['gamma']:.6f}"
        if (source := details["language"]) is not None:
            shown += f", language: {source}"
        if (cover := details["cover"]) is not None:
            shown += f", cover={cover!r}"
        return f"epsilon={up(details['nominal'])}{shown}"
