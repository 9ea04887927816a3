"""Parts of texts privatised, the rest released as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fastdx._core import Embedding, Guarantee, MechanismCore
from fastdx.exceptions import InputTypeError, ParameterError

__all__ = ["PrivateSpans", "Select", "rare"]

Select: TypeAlias = str | Collection[str] | Callable[[str], bool]
"""Which words are privatised: 'rare', the words themselves, or a function of the word."""

COMMON = 1000
"""Words of the built-in vocabulary, most frequent first, that are not rare."""

RELEASED = "all that lies outside the spans is RELEASED AS IT IS, and where the spans lie"


@dataclass(frozen=True)
class PrivateSpans:
    """A text of which only some spans were privatised."""

    text: str
    """The new text."""
    spans: list[tuple[int, int]]
    """Where the spans are now, in characters."""
    counts: dict[str, int]
    """Words of the spans: as `privatize_counted` counts."""
    guarantee: Guarantee
    """The mechanism's, which says that the rest is released as it is: its `bound` is infinite for
    texts that differ in the rest, its `price` for all."""


def _common(count: int) -> frozenset[str]:
    return frozenset(Embedding.default().words[:count])


def rare(common: int | Iterable[str] = COMMON) -> Callable[[str], bool]:
    """Select the words that are not common: those that give a text's author or subject away.

    Which words are common must be public: never count them in the texts that are to be protected.

    Parameters
    ----------
    common : int or iterable of str, optional
        So many words of the built-in English vocabulary, most frequent first, or the common words
        themselves.

    Examples
    --------
    >>> from fastdx.selection import rare
    >>> [word for word in "the nephrologist was there".split() if rare()(word)]
    ['nephrologist']
    """
    if isinstance(common, int):
        if common < 0:
            raise ParameterError(f"common must be at least 0, got {common}")
        known = _common(common)
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
    """Return where the selected words of a text stand, in characters."""
    wanted = selected(select)
    return [(a, b) for a, b in core._word_spans(text) if wanted(text[a:b])]


def private_spans(core: MechanismCore, text: str, spans: Sequence[tuple[int, int]]) -> PrivateSpans:
    """Privatise only the spans; see `Mechanism.privatize_spans`."""
    new, places, counts = core._privatize_spans(text, list(spans))
    ends = [0, *(end for _, end in places)]
    outside = [new[a:b] for a, b in zip(ends, [*(start for start, _ in places), None], strict=True)]
    return PrivateSpans(new, places, counts, Guarantee(core, [RELEASED], outside))
