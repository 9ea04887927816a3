"""How many words the best reader of releases names, who knows the mechanism and the language."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fastdx._core import ChannelCore, NgramPrior
from fastdx._shared.intervals import Interval, over_texts
from fastdx._shared.laws import laws
from fastdx.bags import STOP_WORDS
from fastdx.channel.law import Channel, Prior, by_rank
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

_Places = NDArray[np.int64]
_Numbers = NDArray[np.float64]
_Truths = NDArray[np.bool_]

SEED = 0
"""The seed of the draws in comparisons; it is the same at every ε, so that a search is stable."""


def prior_of(mechanism: Mechanism, prior: Prior) -> _Numbers:
    """Return π as numbers that sum to 1; by default all words are equally likely."""
    count = len(mechanism.space)
    return by_rank(np.ones(count) if prior is None else prior, count)


def likeliest_inputs(
    mechanism: Mechanism, prior: _Numbers, most: int
) -> tuple[NDArray[np.uint32], _Numbers, _Numbers]:
    """Return every output's likeliest words, π_w·Pr[y|w] of each, and the sum over all words.

    Shapes (V, most), (V, most) and (V,); the likeliest word first.
    """
    count = len(prior)
    totals = np.zeros(count)
    joint: _Numbers = np.zeros((0, count))
    words: NDArray[np.uint32] = np.zeros((0, count), dtype=np.uint32)
    for part, law in laws(ChannelCore(mechanism), count, release=False):
        here = prior[part, None] * law
        totals += here.sum(axis=0)
        ids = np.arange(part.start, part.stop, dtype=np.uint32)[:, None]
        joint = np.vstack([joint, here])
        words = np.vstack([words, np.broadcast_to(ids, law.shape)])
        if (left_out := len(joint) - most) > 0:
            best = np.argpartition(joint, left_out, axis=0)[left_out:]
            words = np.take_along_axis(words, best, axis=0)
            joint = np.take_along_axis(joint, best, axis=0)
    order = np.lexsort((words, -joint), axis=0)
    words = np.take_along_axis(words, order, axis=0)
    return words.T, np.take_along_axis(joint, order, axis=0).T, totals


def best_guess(
    mechanism: Mechanism, prior: _Numbers, most: int = 1
) -> tuple[_Numbers, float, str, str]:
    """Sum, over all outputs y of a mechanism with a law, the largest π_w·Pr[y|w].

    Returns the probabilities that the word is among the first 1, 2, … guesses, up to `most`; the
    largest posterior probability of a word given one output; this word, and the output.
    """
    words, joint, totals = likeliest_inputs(mechanism, prior, most)
    with np.errstate(invalid="ignore"):
        posterior = np.where(totals > 0, joint[:, 0] / totals, 0.0)
    y, names = int(posterior.argmax()), mechanism.space.words
    success = joint.sum(axis=0).cumsum().clip(max=1.0)
    return success, float(posterior[y]), names[words[y, 0]], names[y]


class PrivateTexts:
    """Texts and their release; arrays hold the words of all texts one after the other."""

    def __init__(
        self, mechanism: Mechanism, texts: Iterable[str], stop_words: Iterable[str] = STOP_WORDS
    ) -> None:
        given = list(texts)
        places = {word: i for i, word in enumerate(mechanism.space.words)}
        self.texts = len(given)
        self.outputs: list[str | list[str]] = []
        """The release of each text. If it has another number of words than the text, a list of
        replacements instead, one for each word."""
        written: list[int] = []
        shown: list[int] = []
        self.lengths: list[int] = []
        for text, out in zip(given, mechanism.privatize(given), strict=True):
            words = mechanism.tokenize(text)
            if mechanism.oov == "drop":
                words = [x for x in words if x in places or x in mechanism.skip]
            released = mechanism.tokenize(out)
            if len(released) == len(words):
                self.outputs.append(out)
            else:
                # Kept although oov='drop': numbers with a law, skipped words in capitals.
                released = mechanism.privatize_tokens(words)
                self.outputs.append(released)
            written += [places.get(x, -1) for x in words]
            shown += [places.get(x, -1) for x in released]
            self.lengths.append(len(words))
        self.written: _Places = np.array(written, dtype=np.int64)
        self.shown: _Places = np.array(shown, dtype=np.int64)
        """Ids of the released words; -1 for a word that the vocabulary lacks."""
        self.text: _Places = np.repeat(np.arange(self.texts), self.lengths)
        """The index of each word's text."""
        left_out = {*stop_words, *mechanism.skip}
        self.among = [word for word in places if word not in left_out]
        """The words that can be counted: content words that the mechanism replaces."""
        # The last one stands for -1, a word that the vocabulary lacks.
        can = np.array([*(word not in left_out for word in places), False])
        self.content: _Truths = can[self.written]
        """Which words are counted."""
        if not self.content.any():
            raise ParameterError("texts must hold at least one content word of the vocabulary")

    def best(
        self, channel: Channel, model: NgramPrior, among: Iterable[str] | None = None
    ) -> _Places:
        """Return the likeliest of some words at each place, given the whole release.

        Whoever names only words that are counted, those of `among` by default, names most of them.
        This is for attacks, which know the original. A decoder must not take words: by those of the
        original it would tell the original.
        """
        mechanism = channel.mechanism
        ids = mechanism.space.ids(self.among if among is None else among).tolist()

        def best(out: str | list[str]) -> _Places:
            return channel._decoded(out, model, ids).best

        found: dict[int, _Places] = {}
        texts = {i: out for i, out in enumerate(self.outputs) if isinstance(out, str)}
        if texts and not mechanism.consistent:
            # An empty line ends the context of the model, so texts can be decoded as one: their
            # sentences are then worked on together.
            together = best("\n\n".join(texts.values()))
            borders = np.cumsum([self.lengths[i] for i in texts])
            if len(together) == borders[-1]:
                found = dict(zip(texts, np.split(together, borders[:-1]), strict=True))
        each = [found[i] if i in found else best(out) for i, out in enumerate(self.outputs)]
        return np.concatenate(each)

    def share(self, named: _Places) -> Interval:
        """Return the share of the counted words that were named, with an interval over texts."""
        text = self.text[self.content]
        hits = np.bincount(text, (named == self.written)[self.content], self.texts)
        return over_texts(hits, np.bincount(text, minlength=self.texts))


def check_texts(
    texts: Iterable[str] | None, model: NgramPrior | None
) -> tuple[list[str], NgramPrior]:
    """Return the texts and the model of an attack on sentences; refuse missing ones."""
    if texts is None or model is None:
        missing = "texts" if texts is None else "model"
        raise ParameterError(f"{missing} must be given: the attacker reads texts by a model")
    if isinstance(texts, str):
        raise ParameterError("texts must be several texts, got one str")
    return list(texts), model


def named_in_sentences(mechanism: Mechanism, texts: list[str], model: NgramPrior) -> Interval:
    """Return the share of content words that the strongest attacker names in these texts.

    The draws have a fixed seed, so mechanisms that differ only in ε use the same draws.
    """
    release = PrivateTexts(mechanism := mechanism._seeded(SEED), texts)
    return release.share(release.best(Channel.of(mechanism), model))
