"""The posterior of all words of a text, given its release."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Embedding, NgramPrior, PosteriorCore
from fastdx._shared.checks import one_of, share
from fastdx.bags import STOP_WORDS
from fastdx.channel.views import NOTHING, UNKNOWN, DecodedGuarantee, DecodedWord, View, certain
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

_Numbers = NDArray[np.float64]


class Posterior:
    """The distribution of the words of a text, given its release.

    Made by `Channel.decode`. The strongest attack is `best`; the best use are `means` and
    `expected_counts`.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel, NgramPrior
    >>> e = Embedding(["tea", "cup", "of"], [[0.0], [3.0], [9.0]])
    >>> prior = NgramPrior.train(e, ["cup of tea", "cup of tea"], order=2)
    >>> posterior = Channel.of(Tem(e, 2.0)).decode("Tea: of tea.".lower(), prior)
    >>> [word for word, _ in (posterior.top(i, 1)[0] for i in range(len(posterior)))]
    ['cup', 'of', 'tea']
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

    def __len__(self) -> int:
        return len(self._core)

    @property
    def exact(self) -> bool:
        """Whether all numbers are exact sums over the law: they are, but for consistent texts."""
        return self._core.exact

    @property
    def log_evidence(self) -> float:
        """The natural logarithm of the probability of the release; NaN where it is not exact."""
        return self._core.log_evidence

    @property
    def expected_right(self) -> float:
        """The expected share of the replaced words that are `best`; NaN where there are none."""
        return self._core.expected_right

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
        most = min(max(k.__index__(), 0), len(marginal))
        ids = np.argsort(-marginal, kind="stable")[:most]
        words = self._space.words
        return [(words[id], float(marginal[id])) for id in ids]

    @cached_property
    def means(self) -> _Numbers:
        """The posterior mean of each word's vector in the mechanism's embedding: shape (n, dim).

        Of all that can be made of the release, nothing is nearer to the vector in the mean square.
        An unknown word counts as the mean of all vectors by the prior's frequencies.
        """
        if not isinstance(self._space, Embedding):
            raise ParameterError("means needs an Embedding: words of a graph have no vectors")
        vectors = self._space.vectors.astype(np.float64)
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

        Examples
        --------
        >>> from fastdx import Embedding, Tem
        >>> from fastdx.channel import Channel, NgramPrior
        >>> e = Embedding(["in", "flu", "cancer", "london"], [[0.0], [9.0], [9.1], [99.0]])
        >>> prior = NgramPrior.of_frequencies(e, [60, 1, 1, 1])
        >>> posterior = Channel.of(Tem(e, 2.0)).decode("cancer in london", prior)
        >>> posterior.text("certain", at_least=0.7).text
        '[disease] in london'
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
                words.append(certain(self.marginals(i), self._space.words, frequencies, at_least))
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
        words, stop = self._space.words, STOP_WORDS
        right = [float(p) for id, p, shown in zip(self.best, self.certainty, self.written,
                 strict=True) if not shown and id >= 0 and words[id] not in stop]  # fmt: skip
        return float(np.mean(right)) if right else float("nan")

    @property
    def guarantee(self) -> DecodedGuarantee:
        """The guarantee of a decoded text. Printed, it is the mechanism's guarantee and more."""
        mark = hashlib.sha256(self._prior._to_bytes()).hexdigest()[:16]
        model = f"NgramPrior of order {self._prior.order} (fingerprint {mark})"
        return DecodedGuarantee(self._mechanism.guarantee, model, self.expected_right_content)

    def __repr__(self) -> str:
        how = "" if self._core.exact else ", approximate"
        return (f"Posterior({len(self)} words, {self.expected_right:.1%} expected to be named"
                f"{how})")  # fmt: skip
