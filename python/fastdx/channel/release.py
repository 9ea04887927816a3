"""A release as it was given, laid out for reading; and what may be said of a decoded text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Guarantee, NgramPrior
from fastdx.channel import views
from fastdx.channel.hierarchy import hierarchy_of
from fastdx.channel.receiver import by_rank
from fastdx.channel.views import DecodedWord, View
from fastdx.mechanisms import Mechanism

_Numbers = NDArray[np.float64]
UNKNOWN = "[UNKNOWN]"


class _Decoded(Protocol):
    """The part of a posterior that views use."""

    written: NDArray[np.bool_]
    unknown: _Numbers

    def __len__(self) -> int: ...
    def marginals(self, i: SupportsIndex) -> _Numbers: ...
    def sample(
        self, m: SupportsIndex, seed: SupportsIndex | None = None
    ) -> list[str] | list[list[str]]: ...


@dataclass(frozen=True)
class DecodedGuarantee:
    """The guarantee of a decoded text. Printed, it is the mechanism's guarantee and more."""

    mechanism: Guarantee
    """The guarantee of the release. It holds for everything computed from the release."""
    model: str
    """The public model of language, with its fingerprint where it has one."""
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
class Release:
    """A release, its mechanism, and the model that it was decoded with."""

    mechanism: Mechanism
    prior: Any
    given: str | list[str]

    @cached_property
    def model(self) -> str:
        """The name of the model of language, and the fingerprint of its numbers."""
        if not isinstance(self.prior, NgramPrior):
            return type(self.prior).__name__
        mark = hashlib.sha256(self.prior._to_bytes()).hexdigest()[:16]
        return f"NgramPrior of order {self.prior.order} (fingerprint {mark})"

    @cached_property
    def frequencies(self) -> _Numbers:
        """How often each word is written, by the model or else by rank."""
        if isinstance(self.prior, NgramPrior):
            return self.prior.frequencies
        return by_rank(None, len(self.mechanism.space))

    @cached_property
    def _laid_out(self) -> tuple[list[str], list[str]]:
        """The words as released, and what stands before each and behind the last."""
        if not isinstance(self.given, str):
            return self.given, ["", *[" "] * (len(self.given) - 1), ""]
        words, gaps, done = [], [], 0
        for start, end in self.mechanism._word_spans(self.given):
            gaps.append(self.given[done:start])
            words.append(self.given[start:end])
            done = end
        return words, [*gaps, self.given[done:]]

    def words(self, posterior: _Decoded, ids: NDArray[np.int64]) -> View:
        """Return a view of one word a place."""
        names, (released, gaps) = self.mechanism.space.words, self._laid_out
        words = []
        for i, id in enumerate(ids.tolist()):
            if posterior.written[i]:
                words.append(DecodedWord(released[i], "shown", 1.0))
                continue
            marginal = posterior.marginals(i)
            top = views.likely_words(marginal, names)
            if 0 <= id < len(names):
                words.append(DecodedWord(names[id], "word", float(marginal[id]), top))
            else:
                words.append(DecodedWord(UNKNOWN, "word", float(posterior.unknown[i]), top))
        return self._view(words, gaps)

    def likely(self, posterior: _Decoded, ids: NDArray[np.int64]) -> View:
        """Return `words`, or nothing where naming the most frequent word is right more often."""
        found = self.words(posterior, ids)
        if not found.expected_right < float(self.frequencies.max()):
            return found
        nothing = [word if word.kind == "shown" else DecodedWord(views.OPEN, "open", 0.0, word.top)
                   for word in found.words]  # fmt: skip
        return self._view(nothing, found.gaps)

    def certain(self, posterior: _Decoded, at_least: float) -> View:
        """Return a view of what is probable enough."""
        names, (released, gaps) = self.mechanism.space.words, self._laid_out
        words = []
        for i in range(len(posterior)):
            if posterior.written[i]:
                words.append(DecodedWord(released[i], "shown", 1.0))
                continue
            words.append(views.certain(
                posterior.marginals(i), names, hierarchy=hierarchy_of(names),
                prior=self.frequencies, at_least=at_least,
            ))  # fmt: skip
        return self._view(words, gaps)

    def _view(self, words: Sequence[DecodedWord], gaps: Sequence[str]) -> View:
        text = views.joined(words, gaps)
        return View(text, views.right(words), tuple(words), tuple(gaps))

    def sampled(self, posterior: _Decoded, seed: SupportsIndex | None) -> View:
        """Return a view of a sample, of which a word is right as often as two samples agree."""
        drawn = posterior.sample(1, seed)[0]
        replaced = [i for i in range(len(posterior)) if not posterior.written[i]]
        same = [float(p @ p) for p in map(posterior.marginals, replaced)]
        text = drawn if isinstance(drawn, str) else " ".join(drawn)
        return View(text, float(np.mean(same)) if same else float("nan"))
