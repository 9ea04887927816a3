"""Language models: n-grams over the words of a space."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Embedding, NgramPriorCore, WordGraph
from fastdx.exceptions import InputTypeError


class NgramPrior:
    """An n-gram model of language over the words of a space, by interpolated Kneser-Ney.

    Made by `train`, `english`, `of_frequencies` or `load`; immutable, may be pickled. Tokens are
    the words of the space and one *unknown* token that stands for every other word: it has a
    probability, and is a history like any word. The first word of a sentence (of a text, behind
    '.', '!', '?' or an empty line) has a history of its own. What was never seen is filled up by
    shorter histories, and in the end by frequencies, so no word is impossible.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.channel import NgramPrior
    >>> e = Embedding(["a", "b", "c"], [[0.0], [1.0], [2.0]])
    >>> prior = NgramPrior.train(e, ["a b a b", "a b c"], order=2)
    >>> int(prior.next(["a"]).argmax()), round(float(prior.next(["a"]).sum()), 9)
    (1, 1.0)
    """

    __slots__ = ("_core",)

    def __init__(self, core: NgramPriorCore) -> None:
        """Wrap a core: use `train`, `of_frequencies` or `load`."""
        if not isinstance(core, NgramPriorCore):
            raise InputTypeError("an NgramPrior is made by train, of_frequencies or load")
        self._core = core

    @classmethod
    def train(
        cls,
        space: Embedding | WordGraph,
        texts: Iterable[str],
        order: SupportsIndex = 2,
        *,
        frequencies: ArrayLike | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> NgramPrior:
        """Count the n-grams of public texts. Never of the texts that are to be protected.

        Parameters
        ----------
        space : Embedding or WordGraph
            The words.
        texts : iterable of str
            Public texts; words are found as a mechanism on this space finds them.
        order : int, optional
            1 to 3: how many words, the next one included, depend on each other.
        frequencies : array_like of float, shape (V,), optional
            How often words are written that the texts do not hold; by default 1/(rank + 2.7) in the
            order of the space.
        progress : callable, optional
            Called now and then with the number of texts done.

        Raises
        ------
        TooLargeError
            More than two million words.
        """
        return cls(NgramPriorCore.train(space, texts, order, frequencies, progress))

    @classmethod
    def english(cls, space: Embedding | WordGraph | None = None) -> NgramPrior:
        """Return the built-in bigrams of English.

        Counted in six public sources, mostly conversations, definitions and speeches (NOTICE
        names them), with frequencies that are partly those of wordfreq. That is English in general:
        train a model on public texts of the kind that is protected where there are some.

        Parameters
        ----------
        space : Embedding or WordGraph, optional
            The words: by default `Embedding.default()`. A space of some of these words, in any
            order, has the model in which the other words are unknown ones.

        Raises
        ------
        ParameterError
            A space with words that are not built in.

        Examples
        --------
        >>> from fastdx.channel import NgramPrior
        >>> prior = NgramPrior.english()
        >>> prior.space.words[prior.next(["at", "the", "same"]).argmax()]
        'time'
        """
        return cls(NgramPriorCore.english(Embedding.default() if space is None else space))

    @classmethod
    def of_frequencies(
        cls,
        space: Embedding | WordGraph,
        frequencies: ArrayLike | None = None,
        *,
        unknown: float = 0.0,
    ) -> NgramPrior:
        """Make the model without history: `space` and `frequencies` as for `train`.

        `unknown` is how often a word is written that the space does not have.
        """
        return cls(NgramPriorCore.of_frequencies(space, frequencies, unknown))

    @classmethod
    def load(cls, space: Embedding | WordGraph, path: str | PathLike[str]) -> NgramPrior:
        """Read what `save` wrote.

        Raises
        ------
        ParameterError
            The model is of other words, or of the same in another order.
        CorruptFileError
            The file is damaged, or holds no model.
        """
        return cls(NgramPriorCore.load(space, path))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file: to a temporary sibling first, which then replaces `path`."""
        self._core.save(path)

    def next(self, words: Iterable[str] = ()) -> NDArray[np.float64]:
        """Return the probability of every word behind the words of a sentence's beginning.

        Given that the next word is known: float64, shape (V,), sums to 1. `words` may be none, or
        more than the order needs; a word that the space does not have counts as unknown.
        """
        return self._core.next(words)[0]

    def unknown_next(self, words: Iterable[str] = ()) -> float:
        """Return the probability that the word behind these is one that the space does not have."""
        return self._core.next(words)[1]

    def behind(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each `second` word behind each `first` one, as pairs tell.

        Both are ids of words; returns float64, shape (first, second).
        """
        return self._core.behind(first, second)

    def perplexity(self, texts: Iterable[str]) -> float:
        """Return exp of the mean of -ln Pr[word | words before it] over the known words of texts.

        As `next`, given that the word is known; NaN where there is none.
        """
        return self._core.perplexity(texts)

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """How often each word is written, given that it is known: shape (V,), sums to 1."""
        return self._core.frequencies

    @property
    def unknown(self) -> float:
        """How often a word is written that the space does not have."""
        return self._core.unknown

    @property
    def order(self) -> int:
        """How many words, the next one included, depend on each other."""
        return self._core.order

    @property
    def space(self) -> Embedding | WordGraph:
        """The words."""
        return self._core.space

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle the model with its space."""
        return _from_bytes, (self.space, self._core.to_bytes())

    def __deepcopy__(self, memo: Any) -> NgramPrior:
        """Return itself: it is immutable."""
        return self

    def __repr__(self) -> str:
        """Return what it is."""
        pairs, triples = self._core.seen
        return (f"NgramPrior({len(self.space):,} words, order {self.order}, {pairs:,} pairs, "
                f"{triples:,} triples)")  # fmt: skip


def _from_bytes(space: Embedding | WordGraph, data: bytes) -> NgramPrior:
    return NgramPrior(NgramPriorCore(space, data))
