"""The posterior of all words of a text, given its release, and texts that people read of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Embedding, NgramPrior, PosteriorCore
from fastdx._shared.checks import one_of, share
from fastdx.bags import STOP_WORDS
from fastdx.channel.hierarchy import hierarchy_of
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

_Numbers = NDArray[np.float64]

UNKNOWN = "[UNKNOWN]"


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
            if not before == word == NOTHING or set(gap) & set(".!?\n"):
                parts += [gap, word.text]
            before = word
        said = [word.probability for word in words if word.kind in ("word", "category")]
        right = float(np.mean(said)) if said else float("nan")
        return cls("".join([*parts, gaps[-1]]), right, tuple(words))

    def __str__(self) -> str:
        said = "says nothing in the place of replaced words"
        if not np.isnan(self.expected_right):
            said = (f"{self.expected_right:.0%} of what it says in the place of replaced words is "
                    "expected to be right, the rest is invented")  # fmt: skip
        return f"[reconstructed; {said}]\n{self.text}"


def _certain(
    marginal: _Numbers, words: tuple[str, ...], prior: _Numbers, at_least: float
) -> DecodedWord:
    """Return the most specific thing that is probable enough at a place."""
    best = int(marginal.argmax())
    if marginal[best] >= at_least:
        return DecodedWord(words[best], "word", float(marginal[best]))
    found = hierarchy_of(words).most_specific(marginal, prior, at_least)
    return NOTHING if found is None else DecodedWord(f"[{found[0]}]", "category", found[1])


def vectors_of(mechanism: Mechanism) -> _Numbers:
    """Return the vectors of a mechanism's words: float64, shape (V, n)."""
    if not isinstance(mechanism.space, Embedding):
        raise ParameterError("mechanism must be of an Embedding: words of a graph have no vectors")
    return mechanism.space.vectors.astype(np.float64)


class Posterior:
    """The distribution of the words of a text, given its release.

    Made by `Channel.decode`. The strongest attack is `best`; the best use are `means` and
    `expected_counts`.
    """

    def __init__(
        self,
        core: PosteriorCore,
        mechanism: Mechanism,
        prior: NgramPrior,
        given: str | list[str],
    ) -> None:
        """Wrap a core: use `Channel.decode`."""
        self._core = core
        self._mechanism, self._prior, self._given = mechanism, prior, given
        self._space = space = mechanism.space
        best, certainty, unknown, written = core.words()
        self.best: NDArray[np.int64] = np.where(best < len(space), best.astype(np.int64), -1)
        """The likeliest word of each place, as its id; -1 where it is one that the space does not
        have: shape (n,). Nobody who knows the prior names more words on average."""
        self.certainty: _Numbers = certainty
        """The probability of each, shape (n,)."""
        self.unknown: _Numbers = unknown
        """The probability of each word that the space does not have it, shape (n,)."""
        self.written: NDArray[np.bool_] = written
        """Whether the release shows the word as it was written, shape (n,)."""
        self.exact = core.exact
        """Whether all numbers are exact sums over the law: they are, but for consistent texts."""
        self.log_evidence = core.log_evidence
        """The natural logarithm of the probability of the release; NaN where it is not exact."""
        self.expected_right = core.expected_right
        """The expected share of the replaced words that are `best`; NaN where there are none."""

    def __len__(self) -> int:
        return len(self._core)

    def _place(self, i: SupportsIndex) -> int:
        place = i.__index__()
        if not -len(self) <= place < len(self):
            raise ParameterError(f"i must be a place of the {len(self)} words, got {place}")
        return place % len(self)

    def marginals(self, i: SupportsIndex) -> _Numbers:
        """Return the probability of every word at place i, given the whole release.

        Float64, shape (V,); sums to 1 less ``unknown[i]``.
        """
        return self._core.marginal(self._place(i))

    def likelihood(self, i: SupportsIndex) -> _Numbers:
        """Return the probability of the release at place i given every word: float64, shape (V,).

        Of a mechanism with a history it is behind what was released before. An attacker with a
        model of language of his own multiplies it by the model's probabilities.
        """
        return self._core.likelihood(self._place(i))

    def top(self, i: SupportsIndex, k: SupportsIndex = 10) -> list[tuple[str, float]]:
        """Return the k likeliest words at place i with their probabilities, likeliest first."""
        marginal = self.marginals(i)
        ids = np.argsort(-marginal, kind="stable")[: max(k.__index__(), 0)]
        words = self._space.words
        return [(words[id], float(marginal[id])) for id in ids]

    @cached_property
    def means(self) -> _Numbers:
        """The posterior mean of each word's vector in the mechanism's embedding: shape (n, dim).

        Of all that can be made of the release, nothing is nearer to the vector in the mean square.
        An unknown word counts as the mean of all vectors by the prior's frequencies.
        """
        vectors = vectors_of(self._mechanism)
        unknown = self._prior.frequencies @ vectors
        means: _Numbers = np.empty((len(self), vectors.shape[1]))
        for i, p in enumerate(self.unknown):
            means[i] = self.marginals(i) @ vectors + p * unknown
        return means

    def expected_counts(self) -> _Numbers:
        """Return how often each word stands in the text, in expectation: float64, shape (V,)."""
        return self._core.expected_counts()

    def sample(
        self, m: SupportsIndex, seed: SupportsIndex | None = None
    ) -> list[str] | list[list[str]]:
        """Return m texts drawn from the posterior: as likely as they stand behind the release.

        White space and punctuation are those of the release; an unknown word is ``[UNKNOWN]``.
        For released tokens, lists of words.
        """
        return self._core.sample(m, seed)

    def viterbi(self) -> str | list[str]:
        """Return the likeliest text as a whole. It names fewer words than `best` on average."""
        found: str | list[str] = self._core.viterbi()
        return found

    def text(self, view: str = "likely", *, at_least: float = 0.5) -> View:
        """Return the text as people read it; printed, it says that it is reconstructed.

        Parameters
        ----------
        view : {'likely', 'certain', 'marginals'}, optional
            'likely': the likeliest text as a whole (`viterbi`), which is fluent as far as the prior
            is, and mostly fiction. If fewer of its words are expected to be right than of the most
            frequent word everywhere, the release says too little for a text, and each place is
            "…". 'marginals': the likeliest word of each place, of which more are
            right. 'certain': at each place the most specific thing that is probable enough: the
            word, else in brackets a category of the probable words by WordNet's hierarchy of nouns,
            else "…"; adjacent ones merge.
        at_least : float, optional
            For 'certain': the least probability of each word or category that it says.
        """
        one_of("view", view, ("likely", "certain", "marginals"))
        at_least, frequencies = share("at_least", at_least), self._prior.frequencies
        ids = self._core.likeliest().astype(np.int64) if view == "likely" else self.best
        released, gaps = self._laid_out()
        words = []
        for i, id in enumerate(ids.tolist()):
            if self.written[i]:
                words.append(DecodedWord(released[i], "shown", 1.0))
            elif view == "certain":
                words.append(_certain(self.marginals(i), self._space.words, frequencies, at_least))
            elif 0 <= id < len(self._space):
                words.append(DecodedWord(self._space.words[id], "word", self.marginals(i)[id]))
            else:
                words.append(DecodedWord(UNKNOWN, "word", float(self.unknown[i])))
        found = View.of(words, gaps)
        if view != "likely" or not found.expected_right < frequencies.max():
            return found
        return View.of([word if word.kind == "shown" else NOTHING for word in words], gaps)

    def _laid_out(self) -> tuple[list[str], list[str]]:
        """Return the words as released, and what stands before each and behind the last."""
        text = self._given
        if not isinstance(text, str):
            return text, ["", *[" "] * (len(text) - 1), ""]
        spans = self._mechanism._word_spans(text)
        ends = [0, *(end for _, end in spans)]
        starts = [*(start for start, _ in spans), len(text)]
        gaps = [text[end:start] for end, start in zip(ends, starts, strict=True)]
        return [text[start:end] for start, end in spans], gaps

    @cached_property
    def expected_right_content(self) -> float:
        """The expected share of right ones among `best` that are content words.

        Of replaced words, those that are no stop words; NaN where there are none.
        """
        # The last one stands for -1, an unknown word.
        stop = np.isin([*self._space.words, UNKNOWN], [*STOP_WORDS, UNKNOWN])
        content = ~self.written & ~stop[self.best]
        return float(self.certainty[content].mean()) if content.any() else float("nan")

    @property
    def guarantee(self) -> str:
        """The guarantee of the release, and a paragraph on what decoding adds.

        The guarantee holds for everything that is computed from the release.
        """
        return self._described(self.expected_right_content)

    def _described(self, right: float) -> str:
        """Return the guarantee with an expected share of right ones among the content words."""
        mark = hashlib.sha256(self._prior._to_bytes()).hexdigest()[:16]
        share = "none" if np.isnan(right) else f"{right:.0%}"
        return (
            f"{self._mechanism.guarantee}\n\n"
            "This text was reconstructed from the release, the mechanism's published law and the "
            f"public model NgramPrior of order {self._prior.order} (fingerprint {mark}) only. It "
            "is post-processing: not more private than the release, and not less. It looks like "
            f"what was written, and is not: {share} of its content words are expected to be right, "
            "if the model is; the rest is invented."
        )

    def __repr__(self) -> str:
        how = "" if self.exact else ", approximate"
        return (f"Posterior({len(self)} words, {self.expected_right:.1%} expected to be named"
                f"{how})")  # fmt: skip
