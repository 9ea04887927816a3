"""Privatises parts of texts and releases the rest unchanged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil
from operator import index
from typing import Any, NamedTuple, TypeAlias

from fastdx._core import Embedding, Guarantee, NgramPrior
from fastdx._shared.checks import at_least, inside
from fastdx.exceptions import InputTypeError, ParameterError

__all__ = ["PrivateSpans", "Select", "improbable", "rare"]

COMMON = 1000
"""The number of most frequent words of the built-in vocabulary that are not rare."""

RELEASED = "all that lies outside the spans is RELEASED AS IT IS, and where the spans lie"

CHOSEN = (
    "the spans were chosen by the words of the text, and the choice is RELEASED: it tells of these "
    "words, also of those that are replaced, and nothing bounds how much"
)


class PrivateSpans(NamedTuple):
    """A text with privatised spans; the rest is unchanged."""

    text: str
    """The new text."""
    spans: list[tuple[int, int]]
    """The places of the union of the spans in the new text, in the unit of the given ones."""
    counts: dict[str, int]
    """Counts of the words in the spans, as from `privatize_counted`."""
    guarantee: Guarantee
    """The mechanism's guarantee, with the exception that the rest is released unchanged. Its
    `bound` is infinite for texts that differ in the rest, and for any two texts where words were
    selected: another text may have other spans. Its `price` is always infinite."""


class improbable:
    """Select the words that hardly follow the word before them, and all unknown words.

    A query keeps its carrier phrase, and its slots are replaced (Feyisetan et al., ICDM 2019). The
    choice depends on the private words and is released, so there is no bound for a text: whoever
    sees that a word was kept knows that it was probable. Every word drawn by a `Tem` with this
    model as its `language` has a bound, and keeps carrier phrases often.

    Parameters
    ----------
    model : fastdx.channel.NgramPrior
        Public bigrams, for example ``NgramPrior.english()``. Never count the texts to be protected.
    share : float, optional
        The share of a text's words to select, the least probable ones, above 0 and below 1.
    below : float, optional
        Selects words whose probability behind the word before them is below this.

    Raises
    ------
    ParameterError
        Not one of `share` and `below` is given, or it does not lie between 0 and 1.

    Examples
    --------
    >>> from fastdx.channel import NgramPrior
    >>> from fastdx.mechanisms import improbable
    >>> words = "what is the weather in reykjavik".split()
    >>> [words[i] for i in improbable(NgramPrior.english(), share=0.3).places(words)]
    ['weather', 'reykjavik']
    """

    def __init__(
        self, model: NgramPrior, *, share: float | None = None, below: float | None = None
    ) -> None:
        if (share is None) == (below is None):
            raise ParameterError("share or below must be given, and not both")
        for name, value in (("share", share), ("below", below)):
            if value is not None:
                inside(name, value)
        self._model, self._share, self._below = model, share, below

    def probabilities(self, words: Sequence[str]) -> list[float]:
        """Return the probability of each word behind the one before it; 0 for unknown words.

        The first word, and a word behind an unknown one, has its frequency.
        """
        space = self._model.space
        ids = [space.ids([w])[0] if w in space else None for w in map(str.lower, words)]
        return [
            0.0 if here is None
            else float(self._model.frequencies[here]) if before is None
            else float(self._model.behind([before], [here])[0, 0])
            for before, here in zip([None, *ids], ids, strict=False)
        ]  # fmt: skip

    def places(self, words: Sequence[str]) -> list[int]:
        """Return the positions of the selected words, ascending."""
        found = self.probabilities(words)
        if self._below is not None:
            return [i for i, p in enumerate(found) if p < self._below]
        # At least the share; of equal probabilities the first ones.
        count = ceil((self._share or 0.0) * len(words) * (1 - 1e-12))
        return sorted(sorted(range(len(words)), key=found.__getitem__)[:count])


Select: TypeAlias = str | Collection[str] | Callable[[str], bool] | improbable
"""A selection of words: 'rare' (`rare`), a collection of the words themselves, a function that
returns True for them, or `improbable`, those that a public model does not expect."""


def rare(common: int | Iterable[str] = COMMON) -> Callable[[str], bool]:
    """Select the words that are not common, which can reveal a text's author or subject.

    `common` are the common words, or a number of most frequent words of the built-in English
    vocabulary. They must be public: never count words in the texts to be protected.

    Examples
    --------
    >>> from fastdx.mechanisms import rare
    >>> [word for word in "the nephrologist was there".split() if rare()(word)]
    ['nephrologist']
    """
    if isinstance(common, int):
        at_least("common", common, 0)
        known = frozenset(Embedding.default().words[:common])
    else:
        known = frozenset(word.lower() for word in common)
    return lambda word: word.lower() not in known


def places_of(words: Sequence[str], select: Select) -> list[int]:
    """Return the positions of the selected words."""
    if isinstance(select, improbable):
        return select.places(words)
    if select == "rare":
        select = rare()
    elif isinstance(select, Collection) and not isinstance(select, str):
        chosen = frozenset(word.lower() for word in select)
        return [i for i, word in enumerate(words) if word.lower() in chosen]
    if not callable(select):
        raise InputTypeError(f"select must be 'rare', words or a function, not {select!r}")
    return [i for i, word in enumerate(words) if select(word)]


def pairs(spans: Any) -> list[tuple[int, int]]:
    """Return spans as pairs: of pairs, rows of an array, dicts, or objects with a start and end."""

    def position(value: Any) -> int:
        # The core takes 64 bits; a number beyond them lies outside of every text.
        return max(-(2**63), min(2**63 - 1, index(value)))

    found = []
    try:
        for span in spans:
            if isinstance(span, Mapping):
                start, end = span["start"], span["end"]
            elif hasattr(span, "start_char"):  # spaCy, where start and end count tokens
                start, end = span.start_char, span.end_char
            elif hasattr(span, "start"):
                start, end = span.start, span.end
            else:
                start, end = span
            found.append((position(start), position(end)))
    except (TypeError, ValueError, KeyError, AttributeError):
        pass
    else:
        return found
    # Outside of the clause, because the handled error may hold content.
    raise InputTypeError(
        "spans must be a list of pairs of whole numbers, of dicts or objects with 'start' and "
        f"'end', or an array of shape (n, 2); the item at position {len(found)} is none of these"
    )
