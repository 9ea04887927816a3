"""Outputs counted by document, and what they tell of the words behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fastdx._core import student_tail
from fastdx._shared.checks import check_type, inside, share
from fastdx._shared.intervals import quantile
from fastdx._shared.kinds import Kind, shape_of
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.law import Prior, by_rank
from fastdx.counts.linear import Rule, rule_for
from fastdx.counts.update import Update
from fastdx.exceptions import InputTypeError, ParameterError

_Numbers = NDArray[np.float64]

MEMORY_BYTES = 2 << 30
"""Bytes of the law that `Estimator.distribution` keeps."""
UNKNOWN = 0.02
"""How often an unknown word is taken to be written at the start, if the prior does not say it."""

_RULES: WeakKeyDictionary[Channel, dict[Any, Rule]] = WeakKeyDictionary()
"""Rules by what they were made for, as long as their channel lives."""


@dataclass(frozen=True)
class Share:
    """An estimated share of words, with its interval. Printed, it is a sentence."""

    value: float
    """The estimate. The noise may bring it below 0."""
    low: float
    """The lower end of the interval, at least 0."""
    high: float
    """The upper end, at most 1."""
    bias: float
    """How far the estimate's expectation may be from the share, whatever the texts say. The
    interval includes it."""
    error: float
    """The standard error, by documents."""
    documents: int
    """Documents that it was estimated from."""
    confidence: float
    """How often such intervals hold the share, at least."""

    def __str__(self) -> str:
        return (f"{self.value:.2%} of all words ({self.low:.2%} to {self.high:.2%} with "
                f"{self.confidence:.0%} confidence, {self.documents:,} documents; "
                f"of that ±{self.bias:.2%} is bias)")  # fmt: skip


class Distribution(NamedTuple):
    """Estimated frequencies of words."""

    frequencies: _Numbers
    """How often each word is written, given that it is known: float64, shape (V,), sums to 1."""
    unknown: float
    """How often a word is written that the space does not have."""
    rounds: int
    """Rounds that were made."""


@dataclass(frozen=True)
class Difference:
    """How differently often two groups write a word."""

    word: str
    """The word."""
    value: float
    """Its share in the first group less that in the second."""
    low: float
    """The lower end of the interval of this difference."""
    high: float
    """The upper end."""
    bias: float
    """The part of the interval that allows for bias."""
    p_value: float
    """How probable so large a difference is at most where the shares are the same."""
    differs: bool
    """Whether it is a discovery at the rate asked for."""


class Estimator:
    """Estimates the frequencies of the words behind releases.

    Counts outputs by document, and needs nothing but the releases and the channel's card.
    Documents are the unit of all intervals: the texts of one person may be alike, and belong in
    one.

    Parameters
    ----------
    channel : Channel
        The law of the mechanism that made the releases: `Channel.load` of their card.
    prior : array_like of float, shape (V,), NgramPrior, or 'rank', optional
        Public frequencies, not those of the texts that are to be protected. `distribution` begins
        with them, and scores of `share` vary least under them; no bound depends on them. By default
        1/(rank + 2.7).

    Raises
    ------
    ParameterError
        A mechanism with ``consistent='call'``, under which all documents share their draws, so that
        no interval could be had; a prior that is none.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.channel import Channel
    >>> from fastdx.counts import Estimator
    >>> e = Embedding(["tea", "coffee", "sun", "rain"], [[0.0], [1.0], [6.0], [7.0]])
    >>> tem = Tem(e, 0.5, oov="mask", seed=1)
    >>> private = tem.privatize(["tea and coffee", "sun", "coffee", "rain and tea"] * 50)
    >>> found = Estimator(Channel.of(tem)).add(private).share(["tea", "coffee"])
    >>> bool(found.low < 4 / 8 < found.high), found.documents
    (True, 200)
    """

    def __init__(self, channel: Channel, prior: Prior = None) -> None:
        check_type("channel", channel, Channel)
        if channel.mechanism.consistent == "call":
            raise ParameterError(
                "channel must not be of consistent='call': all documents share their draws, and "
                "no interval could be had"
            )
        self._channel = channel
        self._prior = by_rank(prior, len(channel.mechanism.space))
        self._unknown = unknown_of(channel, prior)
        self._ids: list[NDArray[np.uint32]] = []
        self._lengths: list[NDArray[np.uint32]] = []

    @property
    def documents(self) -> int:
        """How many documents were added."""
        return sum(map(len, self._lengths))

    @property
    def words(self) -> int:
        """How many words they have."""
        return sum(map(len, self._ids))

    def add(self, texts: Any) -> Estimator:
        """Count the outputs of released documents; returns itself.

        Parameters
        ----------
        texts : str, iterable of str or of lists of str, or column
            One document, or many: a list, an array, a column of pandas, polars or Arrow. What is
            missing is left out. A list within is one document: the texts of one person, or a text's
            released tokens, each of which the mechanism must read as one word.

        Raises
        ------
        ParameterError
            A text is no release of this mechanism.
        InputTypeError
            A frame is given, or what is no text.
        """
        flat, sizes = _texts_and_sizes(texts)
        ids, lengths = self._channel._core.observed(flat, False)
        before = np.cumsum([0, *lengths])
        # A word that shows itself is as good as its output; V stands for an unknown one.
        count = np.uint32(len(self._prior))
        self._ids.append(np.where(ids < count, ids, ids - count))
        self._lengths.append(np.diff(before[np.cumsum([0, *sizes])]).astype(np.uint32))
        return self

    def __add__(self, other: Estimator) -> Estimator:
        """Return an estimator with the documents of both, which are of the same channel."""
        self._check_same(other)
        made = copy(self)
        made._ids, made._lengths = self._ids + other._ids, self._lengths + other._lengths
        return made

    def _check_same(self, other: Estimator) -> None:
        check_type("other", other, Estimator)
        if self._channel.mechanism != other._channel.mechanism:
            raise ParameterError("other must be of the same channel: its mechanism differs")

    def _collected(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return all outputs, and where each document begins."""
        if len(self._ids) != 1:
            empty = np.zeros(0, dtype=np.uint32)
            self._ids = [np.concatenate([empty, *self._ids])]
            self._lengths = [np.concatenate([empty, *self._lengths])]
        lengths = self._lengths[0].astype(np.int64)
        return self._ids[0], np.concatenate([[0], np.cumsum(lengths)])

    def _halves(self) -> NDArray[np.int64]:
        """Return 0 or 1 for every document: decided by what it holds, not by its place."""
        ids, starts = self._collected()
        mixed = np.uint64(0x9E3779B97F4A7C15) * (ids.astype(np.uint64) + np.uint64(1))
        sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed ^ (mixed >> np.uint64(29)))])
        found: NDArray[np.int64] = ((sums[starts[1:]] - sums[starts[:-1]]) >> np.uint64(40)
                                    & np.uint64(1)).astype(np.int64)  # fmt: skip
        return found

    def _rule(self, wanted: _Numbers, words: float, weight: float = 1.0) -> Rule:
        """Return the scores for about so many words and a weight of the bias, made once."""
        rounded = 2.0 ** round(math.log2(max(words, 1.0)))
        rules = _RULES.setdefault(self._channel, {})
        key = (wanted.tobytes(), self._prior.tobytes(), self._unknown, rounded, weight)
        if key not in rules:
            # What an interval has on each side: the bias, and two standard errors.
            rules[key] = rule_for(self._channel, wanted, prior=self._prior, unknown=self._unknown,
                                  cost=lambda rule: weight * rule.bias
                                  + 2 * rule.deviation / math.sqrt(rounded))  # fmt: skip
        return rules[key]

    def _mean(self, rule: Rule) -> tuple[float, float, int]:
        """Return a rule's mean score, its standard error by documents, and how many these are."""
        ids, starts = self._collected()
        # A word that shows to be unknown counts nothing, with certainty.
        scores = np.append(rule.scores, 0.0)
        sums = np.concatenate([[0.0], np.cumsum(scores[ids])])
        totals, sizes = np.diff(sums[starts]), np.diff(starts).astype(np.float64)
        used = sizes > 0
        totals, sizes = totals[used], sizes[used]
        documents = len(sizes)
        if documents < 2:
            raise ParameterError(f"documents must be at least 2 with words, got {documents}")
        value = float(totals.sum() / sizes.sum())
        left = totals - value * sizes
        error = math.sqrt(documents / (documents - 1) * float(left @ left)) / float(sizes.sum())
        return value, error, documents

    def share(self, words: str | Iterable[str], confidence: float = 0.95) -> Share:
        """Estimate which share of all words is one of these; takes at least two documents.

        A score g(y) of every output is chosen by the law, the words, and how many words were
        released; the estimate is the mean score. Its bias is at most max_w |(Kg)_w - f_w|, where
        f is 1 for the words asked for: a maximum over all words, and over unknown ones where
        ``oov='random'`` hides them. The interval is value ± (bias + t·error), with documents as
        independent draws and Student's t: it holds for the documents at hand, and for the
        population that they are drawn from. ``consistent=True`` changes nothing: draws are shared
        within a document only.

        Parameters
        ----------
        words : str or iterable of str
            A word, or a lexicon.
        confidence : float, optional
            The confidence of the interval.
        """
        confidence = inside("confidence", confidence)
        rule = self._rule(indicator(self._channel, words), self.words)
        value, error, documents = self._mean(rule)
        half = rule.bias + quantile(confidence, documents - 1) * error
        low, high = (min(max(end, 0.0), 1.0) for end in (value - half, value + half))
        return Share(value, low, high, rule.bias, error, documents, confidence)

    def distribution(self, *, memory: SupportsIndex = MEMORY_BYTES) -> Distribution:
        """Estimate how often every word is written, from at least two documents.

        By the iterative Bayesian update, x ← x∘K(o/Kᵀx), from the prior. The likeliest frequencies
        fit the noise, too, so it stops early: one half of the documents is fitted, the round is
        found at which the other half is likeliest, at most the 100th, and so many rounds are made
        with all of them. A document's words decide which half it is in. No interval: see `share`.

        Parameters
        ----------
        memory : int, optional
            Bytes of the law that are kept between rounds; the rest is computed anew in each round.
            20,000 words need 1.6 GB.
        """
        ids, starts = self._collected()
        size = len(self._prior)
        of_half = np.repeat(self._halves(), np.diff(starts))
        each = [np.bincount(ids[of_half == half], minlength=size + 1) for half in (0, 1)]
        halves = np.array(each, dtype=np.float64)
        shown, halves = halves[:, size].sum(), halves[:, :size]
        if not halves.sum(axis=1).all():
            raise ParameterError("documents must be at least 2 with words, in both halves")
        outputs = np.flatnonzero(halves.sum(axis=0))
        update = Update(self._channel._core, outputs, self._prior, self._unknown,
                        memory.__index__())  # fmt: skip
        x, done = update.fitted(halves[:, outputs])
        known, hidden, drawn = x[:size], x[size:].sum(), halves.sum()
        unknown = float((shown + hidden * drawn) / (shown + drawn))
        return Distribution(known / known.sum(), unknown, done)

    def top(self, k: SupportsIndex = 20) -> list[tuple[str, float]]:
        """Return the k words that are written most, with their estimated frequencies."""
        found = self.distribution().frequencies
        ids = np.argsort(-found, kind="stable")[: max(k.__index__(), 0)]
        words = self._channel.mechanism.space.words
        return [(words[i], float(found[i])) for i in ids]

    def compare(
        self,
        other: Estimator,
        words: Iterable[str],
        *,
        rate: float = 0.05,
        apart: float = 1.0,
        confidence: float = 0.95,
    ) -> list[Difference]:
        """Find words that two groups write differently often, smallest p-values first.

        Each word's difference has an interval as in `share`, and a p-value that includes the bias:
        that of Student's t for the difference less its bias. Of the words marked as `differs` at
        most the share `rate` is expected to be false, however words depend on each other (Benjamini
        and Yekutieli 2001).

        Parameters
        ----------
        other : Estimator
            The other group, under the same channel.
        words : iterable of str
            Words to be tested. They must not be chosen by these documents.
        rate : float, optional
            Share of false discoveries that is allowed.
        apart : float, optional
            The largest total variation between the frequencies of the groups, which bounds the bias
            of differences: 2·apart·bias. 1 (default) assumes nothing.
        confidence : float, optional
            The confidence of each interval by itself.
        """
        self._check_same(other)
        share("apart", apart)
        inside("rate", rate)
        inside("confidence", confidence)
        rows = []
        for word in dict.fromkeys(words):
            wanted = indicator(self._channel, word)
            rule = self._rule(wanted, min(self.words, other.words), 2**0.5 * apart)
            (first, e, n), (second, f, m) = self._mean(rule), other._mean(rule)
            value, error, degrees = first - second, math.hypot(e, f), min(n, m) - 1
            bias = 2 * apart * rule.bias
            beyond = max(abs(value) - bias, 0.0)
            p = float(beyond == 0)
            if error > 0:
                p = min(2 * student_tail(beyond / error, degrees), 1.0)
            half = bias + quantile(confidence, degrees) * error
            rows.append((word, value, value - half, value + half, bias, p))
        marked = discovered(np.array([row[-1] for row in rows]), rate)
        made = [Difference(*row, bool(mark)) for row, mark in zip(rows, marked, strict=True)]
        return sorted(made, key=lambda d: (d.p_value, -abs(d.value), d.word))

    def outputs(self) -> _Numbers:
        """Return how often each output was seen, which misleads: float64, shape (V,)."""
        size = len(self._prior)
        return np.bincount(self._collected()[0], minlength=size)[:size].astype(np.float64)

    def __repr__(self) -> str:
        return f"Estimator({self.documents:,} documents, {self.words:,} words)"


def unknown_of(channel: Channel, prior: Prior) -> float:
    """Return how often an unknown word is taken to hide behind an output at the start."""
    if channel.mechanism.oov != "random":
        return 0.0
    given = prior.unknown if isinstance(prior, NgramPrior) else UNKNOWN
    return min(max(given, 1e-4), 0.9)


def indicator(channel: Channel, words: str | Iterable[str]) -> _Numbers:
    """Return 1 for the words asked for, 0 for all others: shape (V,)."""
    asked = [words] if isinstance(words, str) else list(words)
    if not asked:
        raise ParameterError("words must be at least one, got none")
    space = channel.mechanism.space
    wanted = np.zeros(len(space))
    wanted[space.ids(asked)] = 1.0
    return wanted


def _texts_and_sizes(given: Any) -> tuple[list[str], list[int]]:
    """Return the texts of what was given, and how many of them make each document."""
    if isinstance(given, str):
        return [given], [1]
    frame = hasattr(given, "columns")
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(given, name):
            given = getattr(given, name)()
            break
    if frame or isinstance(given, (bytes, dict)) or not isinstance(given, Iterable):
        raise InputTypeError("texts must be a str, a list or a column of a frame, not "
                             f"{type(given).__name__}")  # fmt: skip
    texts: list[str] = []
    shape = shape_of(given, "texts", Kind("texts", "a str", (str,), list, list), texts)

    def size(part: Any) -> int:
        return sum(map(size, part)) if isinstance(part, list) else int(part is True)

    return texts, [size(part) for part in shape if not isinstance(part, tuple)]


def discovered(p_values: NDArray[np.float64], rate: float) -> NDArray[np.bool_]:
    """Mark discoveries of which at most the share `rate` is false, in expectation.

    Benjamini and Yekutieli 2001, which holds however tests depend on each other.

    >>> import numpy as np
    >>> discovered(np.array([0.001, 0.5, 0.02]), 0.06).tolist()
    [True, False, True]
    """
    ranks = np.arange(1, len(p_values) + 1)
    ranked, allowed = np.sort(p_values), rate * ranks / (len(ranks) * (1 / ranks).sum())
    marked: NDArray[np.bool_] = p_values <= ranked[ranked <= allowed].max(initial=-1.0)
    return marked
