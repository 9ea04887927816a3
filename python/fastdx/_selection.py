"""Privatises parts of texts and releases the rest unchanged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import index
from typing import Any, NamedTuple, TypeAlias

from fastdx._core import Embedding, Guarantee, MechanismCore
from fastdx._shared.checks import at_least
from fastdx.exceptions import InputTypeError, ParameterError

__all__ = ["PrivateSpans", "Select", "rare"]

Select: TypeAlias = str | Collection[str] | Callable[[str], bool]
"""A selection of words to privatise: 'rare', the words themselves, or a function of the word."""

COMMON = 1000
"""The number of most frequent words of the built-in vocabulary that are not rare."""

RELEASED = "all that lies outside the spans is RELEASED AS IT IS, and where the spans lie"


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
    `bound` is infinite for texts that differ in the rest, and its `price` is always infinite."""


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


def selected(select: Select) -> Callable[[str], bool]:
    """Return the selection as a function of a word."""
    if isinstance(select, str):
        if select != "rare":
            raise ParameterError(f"select must be 'rare', words or a function, got {select!r}")
        return rare()
    if callable(select):
        return select
    if not isinstance(select, Collection):
        raise InputTypeError(
            f"select must be 'rare', words or a function, not {type(select).__name__}"
        )
    words = frozenset(word.lower() for word in select)
    return lambda word: word.lower() in words


def spans_of(core: MechanismCore, text: str, select: Select) -> list[tuple[int, int]]:
    """Return the spans of the selected words of a text, in characters."""
    wanted = selected(select)
    return [(a, b) for a, b in core._word_spans(text) if wanted(text[a:b])]


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


def private_spans(
    core: MechanismCore, text: str, spans: list[tuple[int, int]], unit: str
) -> PrivateSpans:
    """Privatise only the spans; see `Mechanism.privatize_spans`."""
    new, places, counts, outside = core._privatize_spans(text, spans, unit)
    return PrivateSpans(new, places, counts, Guarantee(core, [RELEASED], outside))
