"""The law of a mechanism as a channel from words to outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import ChannelCore, Cover, Embedding, WordGraph, __version__
from fastdx._types import Bits
from fastdx.channel.ngrams import NgramPrior
from fastdx.channel.posterior import Posterior
from fastdx.channel.prefixes import LanguageModel, written_out
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism, from_spec

if TYPE_CHECKING:
    from fastdx.laws import Law

__all__ = ["Bits", "Channel"]

_Numbers = NDArray[np.float64]

CARD = 1
"""The version of cards."""
TOKENIZER = 1
"""The version of the rules by which words are found in texts; raised when these change."""
_SECRET = ("seed", "pad", "threads", "cache_bytes")
"""What a receiver of releases need not know, or must not."""


class _Frequencies(Protocol):
    """What knows how often each word is written: an `NgramPrior`."""

    @property
    def frequencies(self) -> _Numbers: ...


class Channel:
    """What the release of a mechanism tells, exactly.

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
    def of(cls, mechanism: Mechanism, *, cache_bytes: SupportsIndex | None = None) -> Channel:
        """Make the channel of a mechanism.

        Parameters
        ----------
        mechanism : Mechanism
            One that has a law (`has_law`): Tem with and without covers, NeighborResponse,
            FiniteLaw, with ``exclude=``, ``remap=``, ``skip=``, ``oov=``, ``consistent=``.
        cache_bytes : int, optional
            Bytes of columns that are kept; by default ``FASTDX_CACHE_BYTES``, or 128 MiB. What
            comes first is kept, the rest is computed anew each time.

        Raises
        ------
        ParameterError
            Noise in more than two dimensions: nobody can compute its law. In one and two,
            `fastdx.laws` makes it a FiniteLaw.
        """
        if not isinstance(mechanism, Mechanism):
            raise InputTypeError(f"mechanism must be a Mechanism, not {type(mechanism).__name__}")
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
        spec = {k: v for k, v in self._mechanism.spec.items() if k not in _SECRET}
        card = {"card": CARD, "fastdx": __version__, "tokenizer": TOKENIZER,
                "spec": {k: _nowhere(v) for k, v in spec.items()}}  # fmt: skip
        return json.dumps(card, indent=2, ensure_ascii=False)

    @classmethod
    def load(
        cls,
        card: str | Mapping[str, Any],
        space: Embedding | WordGraph | None = None,
        *,
        cover: Cover | None = None,
        remap: Cover | None = None,
        law: ArrayLike | Callable[[int], ArrayLike] | Law | None = None,
        cache_bytes: SupportsIndex | None = None,
    ) -> Channel:
        """Make the channel that a card describes.

        Parameters
        ----------
        card : str or mapping
            What `card` returned.
        space : Embedding or WordGraph, optional
            The words, where they are not built in; their fingerprint is checked.
        cover, remap, law : optional
            Parts that the card has only the fingerprints of; see `fastdx.from_spec`.
        cache_bytes : int, optional
            As for `of`.

        Raises
        ------
        ParameterError
            No card, or one of rules or a version that this fastdx does not know.
        """
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
        made = from_spec(spec, space, cover=cover, remap=remap, law=law)
        return cls.of(made, cache_bytes=cache_bytes)

    def _prior(self, prior: ArrayLike | str | _Frequencies | None) -> ArrayLike | None:
        if isinstance(prior, str):
            if prior != "rank":
                raise ParameterError(f"prior must be numbers, a model or 'rank', got {prior!r}")
            return None
        found: Any = prior
        frequencies: ArrayLike | None = getattr(found, "frequencies", found)
        return frequencies

    def bits(
        self,
        prior: ArrayLike | str | _Frequencies | None = None,
        *,
        sample: SupportsIndex | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Bits:
        """Return the mutual information of a word and its output, in bits.

        Outputs are independent given the words. So a release of n words tells at most n times this
        of its text, whatever the reader knows of the language.

        Parameters
        ----------
        prior : array_like of float, shape (V,), 'rank', or a model of language, optional
            How often each word is written; by default ('rank') 1/(rank + 2.7) in the order of the
            space, which should be that of frequency.
        sample : int, optional
            Words to estimate it from; by default all words, or 4,096 where there are more than
            50,000. The estimate has an interval: its lower and upper ends are bounds in
            expectation, with three standard errors.
        progress : callable, optional
            Called now and then with the number of laws done.

        Returns
        -------
        Bits
            A float with ``.low``, ``.high`` and ``.sampled``.
        """
        return Bits(*self._core.bits(self._prior(prior), sample, progress))

    @cached_property
    def capacity(self) -> float:
        """The Bayes capacity log2 Σ_y max_w Pr[y|w], in bits.

        No prior lets one guess of the word gain more: the share that is named grows by a factor of
        2^capacity at most. Always a sum over all words, which takes minutes at 100,000.
        """
        return self._core.capacity()

    def _id(self, output: str | SupportsIndex) -> int:
        if isinstance(output, str):
            return int(self._mechanism.space.ids([output])[0])
        place = output.__index__()
        count = len(self._mechanism.space)
        if not 0 <= place < count:
            raise ParameterError(f"output must be a word or an id below {count}, got {place}")
        return place

    def likelihood(self, output: str | SupportsIndex) -> _Numbers:
        """Return Pr[output | word] of every word: float64, shape (V,).

        Parameters
        ----------
        output : str or int
            A word of the space, or its id.
        """
        return self._core.likelihood(self._id(output))

    def posterior(
        self,
        output: str | SupportsIndex,
        prior: ArrayLike | str | _Frequencies | None = None,
    ) -> _Numbers:
        """Return Pr[word | output] of every word: float64, shape (V,), sums to 1.

        Parameters
        ----------
        output : str or int
            A word of the space, or its id.
        prior : array_like of float, shape (V,), 'rank', or a model of language, optional
            As for `bits`.

        Raises
        ------
        ParameterError
            No word of the prior has this output.
        """
        return self._core.posterior(self._id(output), self._prior(prior))

    def decode(
        self,
        text: str | Iterable[str],
        prior: NgramPrior | LanguageModel,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> Posterior:
        """Return the posterior of the words behind a released text.

        All texts that could stand behind it are summed over, none is left out. The mechanism's way
        with text is in the model: unknown words are drawn as ``oov=`` has it, skipped words show
        themselves, with ``consistent=`` a repeated word was drawn once. Consistent texts are exact
        where all texts can be written out (a million: few words, or a small space), else
        approximate, and then `Posterior.exact` is False. Words that ``oov='drop'`` left out are not
        missed.

        Parameters
        ----------
        text : str or iterable of str
            What was released: a text, or words that were found elsewhere (one sentence).
        prior : NgramPrior or LanguageModel
            What the reader knows of the language. Any model other than n-grams is summed over
            prefix by prefix, which only texts of a word or two allow, and texts over small spaces.
        progress : callable, optional
            Called now and then with the number of words done.

        Raises
        ------
        ParameterError
            The text is no release of this mechanism, or the prior one of other words.
        """
        given = text if isinstance(text, str) else list(text)
        if isinstance(prior, NgramPrior):
            core = self._core.decode(given, prior._core, progress)
            return Posterior(core, self._mechanism.space)
        if not isinstance(prior, LanguageModel):
            kind = type(prior).__name__
            raise InputTypeError(f"prior must be an NgramPrior or have log_next, not {kind}")
        found = written_out(self._core, self._mechanism, given, prior)
        return Posterior(found, self._mechanism.space)

    def __repr__(self) -> str:
        """Return what it is of."""
        return f"Channel.of({self._mechanism!r})"


def _nowhere(value: Any) -> Any:
    """Return a part of a Spec without where its file lies, if it says what the file holds."""
    if isinstance(value, dict) and "fingerprint" in value:
        return {k: v for k, v in value.items() if k != "file"}
    return value
