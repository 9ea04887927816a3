"""The posterior of all words of a text, given its release."""

from __future__ import annotations

from functools import cached_property
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Embedding, PosteriorCore, WordGraph
from fastdx._shared.checks import share
from fastdx.bags import STOP_WORDS
from fastdx.channel.prefixes import Prefixes
from fastdx.channel.release import DecodedGuarantee, Release
from fastdx.channel.views import View
from fastdx.exceptions import ParameterError

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
    >>> bool(posterior.bits_left < posterior.word_bits.sum())
    True
    """

    def __init__(
        self,
        core: PosteriorCore | Prefixes,
        space: Embedding | WordGraph,
        release: Release | None = None,
        draws: int = 0,
    ) -> None:
        """Wrap a core: use `Channel.decode`."""
        self.draws = draws
        """Draws of every word that the mechanism's law is estimated from; 0 where it is exact. All
        numbers are those of the estimated law."""
        self._core = core
        self._space = space
        self._release = release
        best, certainty, bits, unknown, written = core.words()
        self.best: NDArray[np.int64] = np.where(best < len(space), best.astype(np.int64), -1)
        """The likeliest word of each place, as its id; -1 where it is one that the space does not
        have: shape (n,). Nobody who knows the prior names more words on average."""
        self.certainty: _Numbers = certainty
        """The probability of each, shape (n,)."""
        self.word_bits: _Numbers = bits
        """The entropy of each word by itself, in bits, shape (n,)."""
        self.unknown: _Numbers = unknown
        """The probability of each word that the space does not have it, shape (n,)."""
        self.written: NDArray[np.bool_] = written
        """Whether the release shows the word as it was written, shape (n,)."""

    def __len__(self) -> int:
        return len(self._core)

    @property
    def exact(self) -> bool:
        """Whether all numbers are exact sums over the mechanism's law.

        They are, but for consistent texts of more than a few words, and where the law itself is an
        estimate (`draws`).
        """
        return self._core.exact and not self.draws

    @property
    def log_evidence(self) -> float:
        """The natural logarithm of the probability of the release; NaN where it is not exact."""
        return self._core.log_evidence

    @property
    def expected_right(self) -> float:
        """The expected share of the replaced words that are `best`; NaN where there are none."""
        return self._core.expected_right

    @cached_property
    def bits_left(self) -> float:
        """H(text | release): what the release leaves open of the whole text, in bits.

        At most ``word_bits.sum()``; NaN where it is not exact.
        """
        return self._core.bits_left()

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

    def means_of(self, vectors: ArrayLike) -> _Numbers:
        """Return the posterior mean of each word's vector: float64, shape (n, dim).

        `vectors`, shape (V, dim), are those of the space's words. An unknown word counts as their
        mean by the prior's frequencies.
        """
        return self._core.means(vectors)

    @cached_property
    def means(self) -> _Numbers:
        """The posterior mean of each word's vector in the mechanism's embedding: shape (n, dim).

        Of all that can be made of the release, nothing is nearer to the vector in the mean square.
        """
        if not isinstance(self._space, Embedding):
            raise ParameterError("means needs an Embedding; means_of(vectors) takes any vectors")
        return self.means_of(self._space.vectors)

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

    def _of(self) -> Release:
        if self._release is None:
            raise ParameterError("a Posterior must come from Channel.decode")
        return self._release

    def text(
        self,
        view: str = "likely",
        *,
        at_least: float = 0.5,
        seed: SupportsIndex | None = None,
    ) -> View:
        """Return the text as people read it; printed, it says that it is reconstructed.

        Parameters
        ----------
        view : {'likely', 'certain', 'marginals', 'sample'}, optional
            'likely': the likeliest text as a whole (`viterbi`), which is fluent as far as the prior
            is, and mostly fiction. If fewer of its words are expected to be right than of the most
            frequent word everywhere, the release says too little for a text, and each place is
            "…". 'marginals': the likeliest word of each place, of which more are
            right. 'sample': a text drawn from the posterior. 'certain': at each place the most
            specific thing that is probable enough: the word, else in brackets a category of the
            probable words by WordNet's hierarchy of nouns, else "…"; adjacent ones merge.
        at_least : float, optional
            For 'certain': the least probability of each word or category that it says.
        seed : int, optional
            The seed of the sample.

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
        of = self._of()
        if view == "sample":
            return of.sampled(self, seed)
        if view == "certain":
            return of.certain(self, share("at_least", at_least))
        if view == "marginals":
            return of.words(self, self.best)
        if view == "likely":
            return of.likely(self, self._core.likeliest().astype(np.int64))
        raise ParameterError(
            f"view must be 'likely', 'certain', 'marginals' or 'sample', got {view!r}"
        )

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
        of = self._of()
        return DecodedGuarantee(of.mechanism.guarantee, of.model, self.expected_right_content)

    def __repr__(self) -> str:
        how = "" if self._core.exact else ", approximate"
        if self.draws:
            how += f", by a law estimated from {self.draws:,} draws a word"
        return (f"Posterior({len(self)} words, {self.expected_right:.1%} expected to be named"
                f"{how})")  # fmt: skip
