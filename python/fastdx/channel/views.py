"""A decoded text as people read it: what is likely, or what is certain; marked as reconstructed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Guarantee
from fastdx.channel.hierarchy import hierarchy_of

_Numbers = NDArray[np.float64]

UNKNOWN = "[UNKNOWN]"


@dataclass(frozen=True)
class DecodedGuarantee:
    """The guarantee of a decoded text. Printed, it is the mechanism's guarantee and more."""

    mechanism: Guarantee
    """The guarantee of the release. It holds for everything computed from the release."""
    model: str
    """The public model of language, with its fingerprint."""
    right: float
    """The expected share of right ones among the content words; NaN where there are none."""

    @property
    def paragraph(self) -> str:
        """The paragraph that decoding adds."""
        share = "none" if np.isnan(self.right) else f"{self.right:.0%}"
        return (
            "This text was reconstructed from the release, the mechanism's published law and the "
            f"public model {self.model} only. It is post-processing: not more private than the "
            "release, and not less. It looks like what was written, and is not: "
            f"{share} of its content words are expected to be right, if the model is; the rest is "
            "invented."
        )

    def __str__(self) -> str:
        return f"{self.mechanism}\n\n{self.paragraph}"


@dataclass(frozen=True)
class DecodedWord:
    """A decoded word, or what stands in its place."""

    text: str
    kind: str
    """'word', 'category', 'open', or 'shown' where the release shows the word as written."""
    probability: float
    """The probability that it is true; 1 if the release shows it, 0 if it is open."""


NOTHING = DecodedWord("…", "open", 0.0)
"""Stands where nothing is certain."""


@dataclass(frozen=True)
class View:
    """A reconstructed text. Printed, it says so first; `text` is without the mark."""

    text: str
    expected_right: float
    """The expected share of right ones among the words that it says in place of replaced ones; NaN
    if it says none."""
    words: tuple[DecodedWord, ...]
    """One for each word of the release."""

    @classmethod
    def of(cls, words: Sequence[DecodedWord], gaps: Sequence[str]) -> View:
        """Join words and the text before each and after the last; adjacent open places merge."""
        parts: list[str] = []
        before = None
        for gap, word in zip(gaps, words, strict=False):
            within = before == word == NOTHING
            if not (within and not set(gap) & set(".!?\n")):
                parts += [gap, word.text]
            before = word
        said = [word.probability for word in words if word.kind in ("word", "category")]
        right = float(np.mean(said)) if said else float("nan")
        return cls("".join([*parts, gaps[-1]]), right, tuple(words))

    @property
    def mark(self) -> str:
        """A description in one line."""
        if np.isnan(self.expected_right):
            return "[reconstructed; says nothing in the place of replaced words]"
        return (f"[reconstructed; {self.expected_right:.0%} of what it says in the place of "
                "replaced words is expected to be right, the rest is invented]")  # fmt: skip

    def __str__(self) -> str:
        return f"{self.mark}\n{self.text}"


def certain(
    marginal: _Numbers, words: tuple[str, ...], prior: _Numbers, at_least: float
) -> DecodedWord:
    """Return the most specific thing that is probable enough at a place."""
    best = int(marginal.argmax())
    if marginal[best] >= at_least:
        return DecodedWord(words[best], "word", float(marginal[best]))
    found = hierarchy_of(words).most_specific(marginal, prior, at_least)
    return NOTHING if found is None else DecodedWord(f"[{found.name}]", "category",
                                                     found.probability)  # fmt: skip
