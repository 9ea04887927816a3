"""Bags of words under Earth Mover's privacy (Fernandes, Dras and McIver 2019, POST'19)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import NamedTuple

from fastdx import _core
from fastdx._core import Embedding, Guarantee, WordGraph
from fastdx._shared.checks import check_type
from fastdx._shared.rounded import up
from fastdx.exceptions import InputTypeError, ParameterError, TooLargeError
from fastdx.mechanisms import Mechanism

__all__ = ["STOP_WORDS", "BagGuarantee", "BagOfWords", "bag_words"]

STOP_WORDS = frozenset(
    """a about above after again against all am an and any are aren't as at be because been before
    being below between both but by can can't cannot could couldn't did didn't do does doesn't doing
    don't down during each few for from further had hadn't has hasn't have haven't having he he'd
    he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm i've if in into
    is isn't it it's its itself let's me more most mustn't my myself no nor not of off on once only
    or other ought our ours ourselves out over own same shan't she she'd she'll she's should
    shouldn't so some such than that that's the their theirs them themselves then there there's
    these they they'd they'll they're they've this those through to too under until up very was
    wasn't we we'd we'll we're we've were weren't what what's when when's where where's which while
    who who's whom why why's will with won't would wouldn't you you'd you'll you're you've your
    yours yourself yourselves""".split()  # noqa: SIM905
)
"""English words that say little about a text's topic."""
STEPS = 500_000_000  # of `BagOfWords.log_probability`: some ten seconds


def bag_words(
    text: str,
    *,
    stop_words: Iterable[str] | None = STOP_WORDS,
    space: Embedding | WordGraph | None = None,
) -> list[str]:
    """Return the words of a text without stop words, as a bag contains them.

    With a `space` the text is split as a mechanism on that space splits it (see `fastdx.tokenize`).
    """
    stop = stop_words if isinstance(stop_words, frozenset) else frozenset(stop_words or ())
    return [word for word in _core.tokenize(text, space) if word.lower() not in stop]


class BagGuarantee(NamedTuple):
    """The guarantee of `BagOfWords` for bags of one size. It prints as a sentence."""

    word: Guarantee
    """The guarantee for one word, from which that of a bag follows. A bag tells at most N times the
    bits of `Guarantee.with_bits`."""
    size: int | None
    """N, the number of words; None means any size."""

    @property
    def epsilon(self) -> float:
        """ε·N, per unit of Earth Mover's distance; for any size ε, as for N = 1."""
        return self.word.epsilon * (self.size or 1)

    @property
    def slack(self) -> float:
        """The most that arithmetic adds to a log-ratio."""
        return self.word.slack * (self.size or 1)

    def __str__(self) -> str:
        word = self.word
        void = f"NOTHING IS PROTECTED: {word.void}. Otherwise: " if word.void else ""
        size, n = (f"{self.size}", "") if self.size else ("the same number N of", "N·")
        text = void + (
            f"Between any two bags b, b' of {size} words the likelihood ratio that an observer of "
            f"the output can see is at most exp({up(self.epsilon)}·{n}E(b,b')), E the "
            f"Earth Mover's distance of the {word.metric} metric (POST'19, Theorem 1: the best "
            "matching pairs the words, each pair adds its distance, and E is the mean). The "
            "output has as many words as the input: bags of different sizes are told apart, and "
            "nothing is proved between them."
        )
        if math.isfinite(self.slack) and self.slack > 0:
            text += f" Arithmetic adds at most {up(self.slack, 2)} to the exponent"
            text += "." if self.size else ", a word."
        if word.unknown is not None:
            text += (
                " Unknown words are replaced at random, all by one law; that a word was not in the "
                f"vocabulary shows with a likelihood ratio of at most exp({up(word.unknown, 5)})."
            )
        if word.certificate is not None:
            text += f" Certified: {word.certificate}"
        # A bag has no white space between words, so this exception does not apply.
        exceptions = [e for e in word.exceptions if not e.startswith("white space")]
        return text + "".join(f" Not covered: {e}." for e in exceptions)


class BagOfWords:
    """A word mechanism applied to every word of a bag, a collection of words without order.

    Parameters
    ----------
    mechanism : Mechanism
        Any word mechanism, for example Tem. Refused are ``oov='drop'``, by which the size of the
        output would depend on the words, ``numbers=`` and ``dates=``, because the Earth Mover's
        distance is one of words, and ``consistent=``.

    Examples
    --------
    >>> from fastdx import BagOfWords, Tem
    >>> bags = BagOfWords(Tem.recommended())
    >>> private = bags.privatize({"coffee": 2, "morning": 1})
    >>> private.total()
    3
    >>> round(bags.guarantee_for(["coffee", "coffee", "morning"]).epsilon, 9)
    7.8
    """

    def __init__(self, mechanism: Mechanism) -> None:
        check_type("mechanism", mechanism, Mechanism)
        figures = mechanism.numbers is not None or mechanism.dates is not None
        for wrong, what in (
            (mechanism.oov == "drop", "keep the number of words, got one with oov='drop'"),
            (mechanism.consistent, "draw every word of a bag, got one with consistent="),
            (figures, "draw every word by one metric, got one with numbers= or dates="),
        ):
            if wrong:
                raise ParameterError(f"mechanism must {what}")
        self._mechanism = mechanism

    @property
    def mechanism(self) -> Mechanism:
        """The word mechanism."""
        return self._mechanism

    def __repr__(self) -> str:
        return f"BagOfWords({self._mechanism!r})"

    def privatize(self, bag: Mapping[str, int] | Iterable[str]) -> Counter[str]:
        """Replace every word of a bag, given as words or as words with their counts.

        The result is in alphabetical order, so that the order tells nothing. With ``oov='error'``
        an unknown word is an `UnknownWordError`; its ``.word`` holds the word.
        """
        return Counter(sorted(self._mechanism.privatize_tokens(bag_tokens(bag))))

    def privatize_documents(
        self, texts: Iterable[str], *, stop_words: Iterable[str] | None = STOP_WORDS
    ) -> list[Counter[str]]:
        """Turn texts into private bags (POST'19, Algorithm 2): drop stop words, replace the others.

        Parameters
        ----------
        texts : iterable of str
            The documents; each gives one bag.
        stop_words : iterable of str, optional
            Words to leave out; by default English stop words. None leaves out no word.
        """
        if isinstance(texts, str | bytes) or isinstance(stop_words, str | bytes):
            raise InputTypeError("texts and stop_words must be lists of str, not str")
        stop, space = frozenset(stop_words or ()), self._mechanism.space
        documents = [bag_words(text, stop_words=stop, space=space) for text in texts]
        # One call for all words: large calls are drawn in parallel.
        drawn = iter(self._mechanism.privatize_tokens([*chain.from_iterable(documents)]))
        return [Counter(sorted(islice(drawn, len(words)))) for words in documents]

    def guarantee_for(self, bag: Mapping[str, int] | Iterable[str] | int) -> BagGuarantee:
        """Return the guarantee for bags as large as this one; `bag` may also be the size."""
        if isinstance(bag, Mapping):
            size = sum(_count(at, count) for at, count in enumerate(bag.values()))
        else:
            size = bag if isinstance(bag, int) else len(bag_tokens(bag))
        if isinstance(size, bool) or size < 1:
            raise ParameterError(f"bag must be of at least one word, got {size}")
        return BagGuarantee(self._mechanism.guarantee, size)

    @property
    def guarantee(self) -> BagGuarantee:
        """The guarantee for bags of one size N, for every N."""
        return BagGuarantee(self._mechanism.guarantee, None)

    def bound(
        self, a: Mapping[str, int] | Iterable[str], b: Mapping[str, int] | Iterable[str]
    ) -> float:
        """Return a bound on the log-likelihood ratio that an observer can see between two bags.

        The bound is infinite for bags of different sizes, or if nothing is proved. All words must
        be in the vocabulary.
        """
        words_a, words_b = bag_tokens(a), bag_tokens(b)
        if len(words_a) != len(words_b):
            return math.inf
        gone = Counter(words_a) - Counter(words_b)
        come = Counter(words_b) - Counter(words_a)
        if not gone:
            return 0.0
        guarantee, space = self._mechanism.guarantee, self._mechanism.space
        if not (math.isfinite(guarantee.slack) and self._mechanism.skip.isdisjoint({*gone, *come})):
            return math.inf
        if guarantee.metric == space.metric:
            distance = _core.earth_movers_distance(words_a, words_b, space)
            # The last factor covers the rounding of the distances (n < 2**20 dimensions).
            return self._mechanism.epsilon * len(words_a) * distance * (1 + 2.0**-36)
        # The mechanism has a metric of its own (the discrete one): its bound for a pair of words is
        # the cost of the pair. These costs are a metric, so words in both bags need not move.
        cost = [[guarantee.bound([a], [b]) for b in come] for a in gone]
        moved = _core.optimal_transport(list(gone.values()), list(come.values()), cost)
        return moved.cost * (1 + 2.0**-36)

    def log_probability(
        self, output: Mapping[str, int] | Iterable[str], bag: Mapping[str, int] | Iterable[str]
    ) -> float:
        """Return ln Pr[output | bag], exactly, from the law of the words (POST'19, equation 8).

        A bag forgets which word became which, so this is a sum over all ways to arrange the output
        over the words of the bag: a permanent. It is summed over the sub-bags of the output, of
        which N different words have 2^N. It is -inf where the sizes differ or nothing fits.

        Parameters
        ----------
        output, bag : mapping of str to int, or iterable of str
            The released bag and the written one. All words must be in the vocabulary.

        Raises
        ------
        ParameterError, TooLargeError
            A mechanism that is noise or has a history; an output of too many sub-bags.

        Examples
        --------
        >>> from math import exp
        >>> from fastdx import BagOfWords, Embedding, Tem
        >>> bags = BagOfWords(Tem(Embedding(["a", "b"], [[0.0], [1.0]]), 2.0))
        >>> outputs = [{"a": 2}, {"a": 1, "b": 1}, {"b": 2}]
        >>> [round(exp(bags.log_probability(output, {"a": 2})), 3) for output in outputs]
        [0.534, 0.393, 0.072]
        """
        import numpy as np

        words, outputs = bag_tokens(bag), Counter(bag_tokens(output))
        mechanism, space = self._mechanism, self._mechanism.space
        mechanism._check_one_law()
        places, ids = space.ids(words), space.ids(list(outputs))
        if len(words) != outputs.total():
            return -math.inf
        size = math.prod(count + 1 for count in outputs.values())
        if (steps := size * len(words) * len(outputs)) > STEPS:
            raise TooLargeError(f"output has {size:,} sub-bags: {steps:,} steps, over {STEPS:,}")
        # sums[s]: ln of the sum over all ways in which the words so far became the sub-bag s.
        sums = np.full(size, -np.inf)
        sums[0] = 0.0
        for word, place in zip(words, places, strict=True):
            skipped = word.lower() in mechanism.skip
            law = 1.0 * (ids == place) if skipped else mechanism.probabilities(word)[ids]
            longer, stride = np.full(size, -np.inf), 1
            for count, probability in zip(outputs.values(), law, strict=True):
                if probability > 0:
                    before = sums.reshape(-1, count + 1, stride)[:, :-1] + math.log(probability)
                    after = longer.reshape(-1, count + 1, stride)[:, 1:]
                    np.logaddexp(after, before, out=after)
                stride *= count + 1
            sums = longer
        return float(sums[-1])


def bag_tokens(bag: Mapping[str, int] | Iterable[str]) -> list[str]:
    """Return the words of a bag as a list, each as often as the bag has it."""
    if isinstance(bag, str | bytes):
        raise InputTypeError("a bag is a mapping or a list of words, not str")
    if not isinstance(bag, Mapping):
        return list(bag)
    return [w for at, (word, n) in enumerate(bag.items()) for w in [word] * _count(at, n)]


def _count(at: int, count: object) -> int:
    index = getattr(count, "__index__", None)
    if index is None or isinstance(count, bool) or index() < 0:
        raise ParameterError(f"the count of word {at} must be a whole number ≥ 0, got {count!r}")
    return int(index())
