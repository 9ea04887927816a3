"""The law of a mechanism as a channel from words to outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import (
    CARD,
    TOKENIZER,
    ChannelCore,
    Cover,
    Embedding,
    NgramPrior,
    WordGraph,
)
from fastdx._shared.card import found, is_there
from fastdx._shared.checks import check_type
from fastdx._shared.laws import deniable, laws
from fastdx._types import Bits, LanguageModel
from fastdx.bags import bag_tokens
from fastdx.channel.posterior import Posterior, vectors_of
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism, from_spec

_Numbers = NDArray[np.float64]

Prior: TypeAlias = ArrayLike | str | NgramPrior | None
"""How often each word is written: numbers, 'rank', or a model that knows it."""


def by_rank(prior: Prior, count: int) -> _Numbers:
    """Return a prior as numbers that sum to 1; without one 1/(rank + 2.7)."""
    if isinstance(prior, str) and prior != "rank":
        raise ParameterError(f"prior must be numbers, a model or 'rank', got {prior!r}")
    numbers = prior.frequencies if isinstance(prior, NgramPrior) else prior
    if numbers is None or isinstance(numbers, str):
        numbers = 1 / (np.arange(count) + 3.7)
    given = np.asarray(numbers, dtype=np.float64)
    if given.shape != (count,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ParameterError(f"prior must be {count} numbers, at least 0 and of a positive sum")
    normal: _Numbers = given / given.sum()
    return normal


class Channel:
    """The exact information in a mechanism's release.

    Made by `of`. Immutable and shared freely between threads; columns of the law are kept.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel
    >>> e = Embedding(["a", "b", "c"], [[0.0], [0.1], [5.0]])
    >>> channel = Channel.of(Tem(e, 4.0))
    >>> print(channel.bits([1, 1, 1]))
    0.92 bits
    >>> channel.posterior("c").round(3).tolist()
    [0.0, 0.0, 0.999]
    """

    def __init__(self, mechanism: Mechanism, core: ChannelCore) -> None:
        """Wrap a core: use `of`."""
        self._mechanism = mechanism
        self._core = core

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        *,
        cache_bytes: SupportsIndex | None = None,
    ) -> Channel:
        """Make the channel of a mechanism.

        Parameters
        ----------
        mechanism : Mechanism
            One that has a law (`has_law`): Tem with and without covers, NeighborResponse,
            FiniteLaw, with ``exclude=``, ``remap=``, ``skip=``, ``oov=``, ``consistent=``. Or a Tem
            whose base measure depends on what was released before: then `decode` knows that, and
            what needs one law of a word is refused.
        cache_bytes : int, optional
            Bytes of columns that are kept; by default ``FASTDX_CACHE_BYTES``, or 128 MiB. What
            comes first is kept, the rest is computed anew each time. A column of a FiniteLaw takes
            a pass over all its rows; where all columns fit (8·V² bytes), one pass makes all.

        Raises
        ------
        ParameterError
            Noise: its law is an integral over cells of the vocabulary.
        """
        check_type("mechanism", mechanism, Mechanism)
        return cls(mechanism, ChannelCore(mechanism, cache_bytes))

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self._mechanism

    def card(self) -> str:
        """Return what a receiver of releases must know to make the same channel, as JSON.

        The mechanism's Spec, with the fingerprints of its words and cover, without seeds and places
        of files; and the version of the rules by which words are found. Nothing in it depends on a
        text.

        Raises
        ------
        ParameterError
            A seeded mechanism: whoever knows the seed undoes its releases.

        Examples
        --------
        >>> from fastdx import Tem
        >>> from fastdx.channel import Channel
        >>> card = Channel.of(Tem.recommended()).card()
        >>> Channel.load(card).mechanism == Tem.recommended()
        True
        """
        if self._mechanism.seed is not None:
            raise ParameterError("mechanism must have no seed: its releases protect nobody")
        return self._mechanism._card()

    @classmethod
    def load(
        cls,
        card: str | PathLike[str] | Mapping[str, Any],
        space: Embedding | WordGraph | None = None,
        *,
        cover: Cover | None = None,
        remap: Cover | None = None,
        law: ArrayLike | Callable[[int], ArrayLike] | Any = None,
        language: str | PathLike[str] | ArrayLike | LanguageModel | NgramPrior | None = None,
    ) -> Channel:
        """Make the channel that a card describes.

        Parameters
        ----------
        card : str, path or mapping
            What `card` returned; or a file of it, a release that it lies beside (``fastdx
            privatize`` wrote ``NAME.channel.json``), or a Parquet file that holds
            it.
        space : Embedding or WordGraph, optional
            The words, where they are not built in; their fingerprint is checked.
        cover, remap, law, language : optional
            Parts that the card has only the fingerprints of; see `fastdx.from_spec`.

        Raises
        ------
        ParameterError
            No card, or one of rules or a version that this fastdx does not know; words, a cover or
            a law of other fingerprints.
        """
        if isinstance(card, PathLike) or (isinstance(card, str) and is_there(card)):
            card = found(Path(card))
        try:
            known = json.loads(card) if isinstance(card, str) else dict(card)
            version, tokenizer, spec = known["card"], known["tokenizer"], known["spec"]
        except (ValueError, TypeError, KeyError):
            raise ParameterError("card must be the JSON that Channel.card returns") from None
        if (version, tokenizer) != (CARD, TOKENIZER):
            raise ParameterError(
                f"card must be of version {CARD} and tokenizer {TOKENIZER}, got {version!r} and "
                f"{tokenizer!r}: it takes another version of fastdx"
            )
        made = from_spec(spec, space, cover=cover, remap=remap, law=law, language=language)
        return cls.of(made)

    def bits(self, prior: Prior = None, *, sample: SupportsIndex | None = None) -> Bits:
        """Return the mutual information of a word and its output, in bits.

        Outputs are independent given the words. So a release of n words tells at most n times this
        of its text, whatever the reader knows of the language.

        Parameters
        ----------
        prior : array_like of float, shape (V,), 'rank', or a model of language, optional
            How often each word is written; by default ('rank') 1/(rank + 2.7) in the order of the
            space, which should be that of frequency.
        sample : int, optional
            Laws to estimate it from; by default those of all words, or 4,096 where there are more
            than 50,000. The commonest words are summed, the others drawn by
            the prior. The estimate has an interval: its lower and upper ends are bounds in
            expectation, with three standard errors.

        Returns
        -------
        Bits
            A float with ``.low``, ``.high`` and ``.sampled``.
        """
        public = by_rank(prior, len(self._mechanism.space))
        return Bits(*self._core.bits(public, sample))

    @cached_property
    def capacity(self) -> Bits:
        """The Bayes capacity log2 Σ_y max_w Pr[y|w], in bits.

        No prior lets one guess of the word gain more: the share that is named grows by a factor of
        2^capacity at most. A sum over all words.
        """
        return Bits(*self._core.capacity())

    def deniable(self, factor: float) -> NDArray[np.int64]:
        """Count the words from which each output is about as likely as from its likeliest word.

        (k, γ) plausible deniability of an output y (Feyisetan et al., ICDM 2019, section V-C, as a
        number of the law instead of draws): k is the number of words w with Pr[y|w] at least 1/γ of
        the largest Pr[y|w']. Who sees y cannot tell these k words apart by more than a factor γ.

        Parameters
        ----------
        factor : float
            γ, at least 1.

        Returns
        -------
        NDArray[np.int64]
            k of every word as an output, shape (V,); 0 for words that are never released.

        Examples
        --------
        >>> from fastdx import Embedding, Tem
        >>> from fastdx.channel import Channel
        >>> e = Embedding(["a", "b", "c"], [[0.0], [0.1], [5.0]])
        >>> Channel.of(Tem(e, 2.0)).deniable(2.0).tolist()
        [2, 2, 1]
        """
        return deniable(self._core, len(self._mechanism.space), factor)

    def likelihood(self, output: str | SupportsIndex) -> _Numbers:
        """Return Pr[output | word] of every word, float64, shape (V,); `output` may be an id."""
        space = self._mechanism.space
        place = space.ids([output])[0] if isinstance(output, str) else output.__index__()
        if not 0 <= place < len(space):
            raise ParameterError(f"output must be a word or an id below {len(space)}, got {place}")
        column: _Numbers = self._core.columns([place], release=False)[0]
        return column

    def posterior(self, output: str | SupportsIndex, prior: Prior = None) -> _Numbers:
        """Return Pr[word | output] of every word: float64, shape (V,), sums to 1.

        Parameters
        ----------
        output : str or int
            A word of the space, or its id; some word of the prior must have it.
        prior : optional
            As for `bits`.
        """
        joint = by_rank(prior, len(self._mechanism.space)) * self.likelihood(output)
        if not (sum := joint.sum()) > 0:
            raise ParameterError("output must be one that some word of the prior has")
        posterior: _Numbers = joint / sum
        return posterior

    def posterior_means(self, prior: Prior = None) -> _Numbers:
        """Return the mean of the written word's vector given each output, by itself.

        Float64, shape (V, n), of the vectors of the mechanism's embedding. No other estimate from
        one output is nearer to the vector in the mean square: use it in place of the replacement's
        own vector when you learn from private text. An output that no word of the prior has gets
        the mean of all words. `prior` is as for `bits`.
        """
        return self._received(prior)[1]

    def distortion(self, prior: Prior = None) -> float:
        """Return the best receiver's mean squared error of a word's vector.

        E abs(v(W) - E[v(W) | Y])², a sum over all words and outputs. Without any output it is the
        variance of the vectors. With `bits` it is the mechanism's place beside
        `fastdx.lab.limit`, which no mechanism comes below. `prior` is as for `bits`.
        """
        likely, means, weights, vectors = self._received(prior)
        # About the mean: the difference of two large numbers would lose digits.
        mean = weights @ vectors
        variance = weights @ ((vectors - mean) ** 2).sum(axis=1)
        explained = likely @ ((means - mean) ** 2).sum(axis=1)
        return max(float(variance - explained), 0.0)

    def _received(self, prior: Prior) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers]:
        """Return p(y) and the posterior mean of every output y, π and the vectors."""
        vectors = vectors_of(self._mechanism)
        weights = by_rank(prior, len(vectors))
        likely, sums = np.zeros(len(weights)), np.zeros(vectors.shape)
        for part, law in laws(self._core, len(weights)):
            likely += weights[part] @ law
            sums += law.T @ (weights[part, None] * vectors[part])
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(likely[:, None] > 0, sums / likely[:, None], weights @ vectors)
        return likely, means, weights, vectors

    def decode(
        self,
        text: str | Iterable[str] | Mapping[str, int],
        prior: NgramPrior,
    ) -> Posterior:
        """Return the posterior of the words behind a released text.

        It is a sum over all texts that could stand behind the release. The mechanism's treatment of
        text is in the model: unknown words are drawn as ``oov=`` says, skipped words show
        themselves, with ``consistent=`` a repeated word was drawn once. Posteriors of consistent
        texts are approximate: `Posterior.exact` is False. Words that ``oov='drop'`` left out are
        not restored.

        Parameters
        ----------
        text : str, iterable of str, or mapping of str to int
            What was released: a text, words that were found elsewhere (one sentence), or a bag:
            words and how often each is in it. A bag has no order, so only the frequencies of the
            model are used. `Posterior.expected_counts` are those of the bag that was written.
        prior : NgramPrior
            What the reader knows of the language. Of another model, multiply the probabilities by
            `Posterior.likelihood`.

        Raises
        ------
        ParameterError
            The text is no release of this mechanism, or the prior one of other words.

        Examples
        --------
        >>> from collections import Counter
        >>> from fastdx import Embedding, Tem
        >>> from fastdx.channel import Channel, NgramPrior
        >>> e = Embedding(["tea", "coffee", "king"], [[0.0], [1.0], [9.0]])
        >>> bag = Counter(tea=3, king=1)
        >>> found = Channel.of(Tem(e, 4.0)).decode(bag, NgramPrior.of_frequencies(e))
        >>> found.expected_counts().round(1).tolist()
        [2.7, 0.3, 1.0]
        """
        check_type("prior", prior, NgramPrior)
        if isinstance(text, Mapping):
            self._mechanism._check_one_law()
            prior = NgramPrior.of_frequencies(prior.space, prior.frequencies, unknown=prior.unknown)
            text = bag_tokens(text)
        return self._decoded(text if isinstance(text, str) else list(text), prior, None)

    def _decoded(
        self, given: str | list[str], prior: NgramPrior, among: list[int] | None
    ) -> Posterior:
        core = self._core.decode(given, prior, among)
        return Posterior(core, self._mechanism, prior, given)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the mechanism; columns are made anew."""
        return Channel.of, (self._mechanism,)

    def __deepcopy__(self, memo: Any) -> Channel:
        return self

    def __repr__(self) -> str:
        return f"Channel.of({self._mechanism!r})"
