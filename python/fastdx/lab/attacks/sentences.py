"""Attacks on sentences: the attacker computes each word's posterior given the whole release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Embedding, WordGraph, tokenize
from fastdx._shared.checks import check_type
from fastdx._shared.intervals import Interval
from fastdx.bags import STOP_WORDS
from fastdx.channel import Bits, Channel, NgramPrior
from fastdx.channel.guesses import PrivateTexts
from fastdx.exceptions import ParameterError
from fastdx.lab.attacks.words import LikelyInputs, similarity
from fastdx.mechanisms import Mechanism

_Ids = NDArray[np.uint32]
_Places = NDArray[np.int64]
_Numbers = NDArray[np.float64]
_Named = NDArray[np.bool_]
"""Of every word, whether the attacker may name it."""
Context: TypeAlias = Callable[[_Ids, _Ids], _Numbers]
"""A model of a word given the outputs around it: a function from the outputs of one run, shape
(places,), and candidate words, shape (places, words), to ln Pr[word | outputs at all other places].
`ContextModel.log_probability` of `fastdx.lab.evaluation` is one."""


@dataclass(frozen=True)
class Recovered:
    """The words that an attacker recovers from sentences. It prints as a sentence."""

    words: int
    """The number of content words attacked."""
    texts: int
    """The number of texts that contain attacked words."""
    alone: Interval
    """The share of words named by an attacker who sees one output and knows the words' frequencies.
    The interval treats texts as the samples (`evaluation.over_texts`)."""
    sentence: Interval
    """The share of words named by an attacker who sees the whole text and knows the model."""
    exact: bool
    """Whether `alone` and `sentence` come from exact sums over all words and sentences. Then nobody
    who knows the model and the mechanism names more on average. False for noise without a law,
    which the attacker estimates from draws."""
    unchanged: float
    """The share of words that came back unchanged."""
    bits: Bits | None = None
    """The bits that a release tells about a word, under the model's frequencies. None without a
    law, or with ``bits=False``."""
    similarity: float = float("nan")
    """Mean cosine of word and replacement in the judge's embedding; NaN without a judge."""
    chance: float = float("nan")
    """Mean cosine of words and replacements paired at random; NaN without a judge."""
    context: Interval | None = None
    """The share of words named by an attacker who sees the whole text and has a context model."""

    @property
    def attack(self) -> Interval:
        """The share of words named by the most successful of the attacks."""
        found = [self.sentence, self.alone, *([] if self.context is None else [self.context])]
        return max(found, key=lambda interval: interval.mean)

    def __str__(self) -> str:
        """Return it as a sentence."""
        how = "" if self.exact else ", as far as draws tell"
        context = "" if self.context is None else f", {_percent(self.context)} by the context given"
        text = (f"Of {self.words:,} content words in {self.texts:,} texts an attacker names "
                f"{_percent(self.sentence)} in their sentence, {_percent(self.alone)} by "
                f"themselves{context}{how}; {self.unchanged:.1%} came back unchanged")  # fmt: skip
        if self.bits is not None:
            text += f"; a release tells {self.bits} a word"
        if np.isnan(self.similarity):
            return f"{text}."
        return f"{text}; similarity {self.similarity:.3f}, by chance {self.chance:.3f}."


def _percent(share: Interval) -> str:
    return f"{share.mean:.1%} ({share.low:.1%} to {share.high:.1%})"


def known_runs(space: Embedding | WordGraph, texts: Iterable[str]) -> Iterator[_Ids]:
    """Yield each run of adjacent known words in the texts, as ids."""
    places = {word: i for i, word in enumerate(space.words)}
    for text in texts:
        ids = np.array([places.get(word, -1) for word in tokenize(text, space)], dtype=np.int64)
        for run in _runs(ids):
            yield ids[run].astype(np.uint32)


def _runs(ids: _Places) -> list[slice]:
    """Return the slices of adjacent ids that are not -1."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ids >= 0, [False]]).astype(np.int8)))
    return [slice(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def sentence_attack(
    mechanism: Mechanism,
    texts: Iterable[str],
    model: NgramPrior,
    *,
    channel: Channel | None = None,
    bits: bool = True,
    judge: Embedding | None = None,
    stop_words: Iterable[str] = STOP_WORDS,
    context: Context | None = None,
    inputs: LikelyInputs | None = None,
    draws: int = 100,
) -> Recovered:
    """Privatise texts, and recover their content words from the release.

    The strongest attacker knows the mechanism and the model of language. For each place he names
    the word that is likeliest given the whole release, summed over all sentences, of those words
    that are counted (exact sums, as in `Channel.decode`). Nobody with the same knowledge names more
    of them on average. A second attacker sees each output by itself and knows only the words'
    frequencies.

    With `context` a third attacker names the likeliest word given its own output and the outputs
    around it. Since a word's output depends on that word alone,
    Pr[w | all outputs] ∝ Pr[w | the other outputs]·Pr[y|w].

    If the mechanism is noise without a law, the attackers learn from draws which words cause an
    output, and sum over the likeliest of them. They find less than the best attacker.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism. Only words that it replaces are counted: no unknown and no skipped words.
    texts : iterable of str
        Texts that the model has not seen.
    model : NgramPrior
        The attacker's model of the language, over the mechanism's words.
    channel : Channel, optional
        The channel of this mechanism, if it exists already: several attacks can share its pass over
        all laws.
    bits : bool, optional
        Whether to compute the bits that a release tells, which takes a pass over all laws. There
        are none where a word's law depends on what was released before.
    judge : Embedding, optional
        Another embedding than the mechanism's, to measure the similarity of words and replacements.
    stop_words : iterable of str, optional
        Words that are not counted, because everybody guesses them.
    context : Context, optional
        The third attacker's model of a word given the outputs around it.
    inputs : LikelyInputs, optional
        The likely inputs of this mechanism, if they exist already. They replace `draws`.
    draws : int, optional
        Draws per word from which the attacker learns a mechanism without a law.
    """
    check_type("model", model, NgramPrior)
    if tuple(model.space.words) != tuple(mechanism.space.words):
        raise ParameterError("model must have the mechanism's words, in their order")
    table = None
    read = mechanism.has_law or mechanism._has_history
    if context is not None or not read:
        if inputs is None:
            inputs = LikelyInputs.of(mechanism, model.frequencies, draws=draws)
        table = inputs.under(model.frequencies)
    release_bits = None
    if read:
        channel = Channel.of(mechanism) if channel is None else _checked(channel, mechanism)
        # Before decoding, so that bits and decoding share one pass over all laws.
        release_bits = channel.bits(model) if bits and mechanism.has_law else None
    release = PrivateTexts(mechanism, texts, stop_words)
    content = release.content
    # The last stands for no word, which fills rows of candidates up.
    named = np.append(np.isin(mechanism.space.words, release.among), False)
    if channel is not None:
        alone = NgramPrior.of_frequencies(model.space, model.frequencies, unknown=model.unknown)
        one, path = (release.best(channel, p) for p in (alone, model))
    else:
        assert table is not None
        # Candidates stand in the order of their probability.
        best = named[table.words].argmax(axis=1)
        first = table.words[np.arange(len(best)), best].astype(np.int64)
        one = np.where(release.shown >= 0, first[release.shown], -1)
        path = _per_run(release, lambda out: _likeliest(table, model, out, named))
    around = None
    if context is not None and table is not None:
        around = _per_run(release, lambda out: _by_context(table, context, out, named))
    w, y = release.written, release.shown
    near, chance = similarity(
        mechanism, judge, w[content].astype(np.uint32), y[content].astype(np.uint32)
    )
    return Recovered(
        words=int(content.sum()), texts=len(np.unique(release.text[content])),
        alone=release.share(one), sentence=release.share(path), exact=channel is not None,
        bits=release_bits, unchanged=float((y == w)[content].mean()), similarity=near,
        chance=chance, context=None if around is None else release.share(around),
    )  # fmt: skip


def _checked(channel: Channel, mechanism: Mechanism) -> Channel:
    other = channel.mechanism
    same = type(other) is type(mechanism) and other.epsilon == mechanism.epsilon
    if not (same and tuple(other.space.words) == tuple(mechanism.space.words)):
        raise ParameterError("channel must be the channel of the mechanism")
    return channel


def _per_run(release: PrivateTexts, named: Callable[[_Ids], _Ids]) -> _Places:
    """Return the word named at each place, run by run; -1 where no known word was released."""
    found = np.full(len(release.shown), -1, dtype=np.int64)
    ends = np.cumsum(release.lengths)
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        for run in _runs(release.shown[first:last]):
            at = slice(first + run.start, first + run.stop)
            found[at] = named(release.shown[at].astype(np.uint32))
    return found


def _by_context(table: LikelyInputs, context: Context, out: _Ids, named: _Named) -> _Ids:
    """Return the likeliest candidate that is named, given its own output and the context."""
    words, likelihood = table.log_likelihood(out)
    log = likelihood + context(out, words)
    best = np.where(named[words], log, -np.inf).argmax(axis=1)
    found: _Ids = words[np.arange(len(out)), best]
    return found


def _likeliest(table: LikelyInputs, model: NgramPrior, out: _Ids, named: _Named) -> _Ids:
    """Return the likeliest candidate that is named at each place, summed over all at others."""

    def best(words: _Ids, probability: _Numbers) -> np.uint32:
        return np.uint32(words[np.where(named[words], probability, -1.0).argmax()])

    steps: Sequence[tuple[_Ids, _Numbers]] = [
        (words[logs > -np.inf], np.exp(logs[logs > -np.inf]))
        for words, logs in zip(*table.log_likelihood(out), strict=True)
    ]
    state = model.frequencies[steps[0][0]] * steps[0][1]
    forward, follows = [state / state.sum()], []
    for (before, _), (words, likelihood) in pairwise(steps):
        follows.append(model.behind(before, words))
        state = (forward[-1] @ follows[-1]) * likelihood
        forward.append(state / state.sum())
    message = np.ones(len(steps[-1][0]))
    found = [best(steps[-1][0], forward[-1])]
    for i in range(len(steps) - 2, -1, -1):
        message = follows[i] @ (message * steps[i + 1][1])
        message /= message.max()
        found.append(best(steps[i][0], forward[i] * message))
    return np.array(found[::-1], dtype=np.uint32)
