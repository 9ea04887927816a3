"""What an attacker recovers who knows the mechanism: single words, and words in sentences.

N_w, the probability that a word comes back unchanged, can be gamed: a fixed permutation of the
words has N_w = 0 and hides nothing. These measures cannot: the attacker knows the law of the
mechanism, how often each word is written, and which words follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import Embedding, WordGraph, likeliest_inputs, tokenize
from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.marginals import Chain, Likelihoods, marginals
from fastdx.exceptions import InputTypeError, ParameterError
from fastdx.mechanisms import Mechanism

__all__ = [
    "BigramModel",
    "Context",
    "Likelihoods",
    "LikelyInputs",
    "Recovered",
    "Reidentification",
    "mean_similarity",
    "reidentification",
    "sentence_attack",
]

_Ids = NDArray[np.uint32]
_Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Reidentification:
    """How often an attacker who sees one output names the word. Printed, it is a sentence."""

    success: dict[int, float]
    """For every number of guesses the probability that the word is among them."""
    low: dict[int, float]
    """Lower bounds of that; the same numbers where it is exact."""
    high: dict[int, float]
    """Upper bounds of that, for an attacker who knows as much as the draws say."""
    exact: bool
    """Whether the numbers are sums over the mechanism's law, else counted in draws."""
    worst_posterior: float
    """The most certain an attacker can ever be of a word; NaN where it is counted in draws."""
    word: str | None
    """That word."""
    output: str | None
    """The output that gives it away."""

    def __str__(self) -> str:
        """Return it as a sentence."""
        parts = [f"{share:.3f} by {guesses} guesses" for guesses, share in self.success.items()]
        text = f"The word is named with probability {', '.join(parts)}"
        if not self.exact:
            return f"{text} (counted in draws)."
        return (f"{text}; the surest guess is {self.word!r} for {self.output!r}, right with "
                f"probability {self.worst_posterior:.3f}.")  # fmt: skip


def prior_of(mechanism: Mechanism, prior: ArrayLike | str | None) -> _Numbers:
    """Return π as numbers that sum to 1."""
    count = len(mechanism.space)
    if prior is None:
        return np.full(count, 1 / count)
    if isinstance(prior, str):
        if prior != "rank":
            raise ParameterError(f"prior must be an array or 'rank', got {prior!r}")
        given = 1 / (np.arange(count) + 3.7)
    else:
        given = np.asarray(prior, dtype=np.float64)
    if given.shape != (count,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ParameterError(f"prior must be {count} numbers, at least 0 and of a positive sum")
    normal: _Numbers = given / given.sum()
    return normal


def reidentification(
    mechanism: Mechanism,
    prior: ArrayLike | str | None = None,
    guesses: SupportsIndex | Iterable[SupportsIndex] = 1,
    *,
    draws: int = 200,
    confidence: float = 0.99,
    progress: Callable[[int], object] | None = None,
) -> Reidentification:
    """Measure how often the best attacker names the word that was written, given one output.

    Exact for mechanisms with a law: Σ over outputs y of the g largest π_w·Pr[y|w]. For the others
    the attacker learns from half of `draws` draws of every word and is tested on the other half: no
    more than the best attacker finds, with exact intervals.

    Parameters
    ----------
    mechanism : Mechanism
        Any.
    prior : array_like of float, shape (V,), or 'rank', optional
        π: how often each word is written. By default all alike; 'rank': 1/(rank + 2.7), for
        vocabularies in order of frequency.
    guesses : int or iterable of int, optional
        How many words the attacker may name.
    draws : int, optional
        Draws a word, where there is no law.
    confidence : float, optional
        Of the intervals, where there is no law.
    progress : callable, optional
        Called now and then with the number of words done.

    Returns
    -------
    Reidentification
        ``.success`` by number of guesses, ``.worst_posterior``, ``.word``, ``.output``.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.attacks import reidentification
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [0.1], [5.0], [5.1]])
    >>> plain, cover = (Tem(e, 4.0, cover=k) for k in (None, 2))
    >>> reidentification(cover).success[1] < reidentification(plain).success[1]
    True
    """
    if not isinstance(mechanism, Mechanism):
        raise InputTypeError(f"mechanism must be a Mechanism, not {type(mechanism).__name__}")
    numbers = [guesses] if isinstance(guesses, SupportsIndex) else list(guesses)
    wanted = sorted({int(g.__index__()) for g in numbers})
    count = len(mechanism.space)
    if not wanted or wanted[0] < 1:
        raise ParameterError(f"guesses must be at least 1, got {wanted}")
    most = min(wanted[-1], count)
    pi = prior_of(mechanism, prior)
    if mechanism.has_law:
        words, joint, totals = likeliest_inputs(mechanism, pi, most, progress)
        sums = joint.sum(axis=0).cumsum()
        success = {g: float(min(sums[min(g, most) - 1], 1.0)) for g in wanted}
        with np.errstate(invalid="ignore"):
            posterior = np.where(totals > 0, joint[:, 0] / totals, 0.0)
        y = int(posterior.argmax())
        names = mechanism.space.words
        return Reidentification(success, success, success, True, float(posterior[y]),
                                names[words[y, 0]], names[y])  # fmt: skip
    if draws < 2:
        raise ParameterError(f"draws must be at least 2, got {draws}")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    table = LikelyInputs.of(mechanism, pi, most, draws=draws // 2)
    tested = np.repeat(np.arange(count, dtype=np.uint32), draws - draws // 2)
    out = mechanism.privatize_ids(tested)
    ranks = table.rank_of(out, tested)
    result: dict[str, dict[int, float]] = {"success": {}, "low": {}, "high": {}}
    for g in wanted:
        hits = (ranks < g).reshape(count, -1)
        result["success"][g] = float(hits.mean(axis=1) @ pi)
        # Hoeffding's bound for a sum with weights: exact, whatever the prior.
        each = hits.shape[1]
        width = float(np.sqrt(np.log(2 / (1 - confidence)) * (pi**2).sum() / (2 * each)))
        result["low"][g] = max(0.0, result["success"][g] - width)
        result["high"][g] = min(1.0, result["success"][g] + width)
    return Reidentification(**result, exact=False, worst_posterior=float("nan"), word=None,
                            output=None)  # fmt: skip


@dataclass(frozen=True)
class LikelyInputs:
    """For every output the words that explain it best: what an attacker knows of a mechanism.

    Made by `of`. One pass over all laws, which several attacks can share.
    """

    words: _Ids
    """Words by their joint probability with the output, largest first: ids, shape (V, most); V
    where there are fewer."""
    joint: _Numbers
    """π_w·Pr[y|w] of each, shape (V, most)."""
    prior: _Numbers
    """π, shape (V,)."""

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        prior: ArrayLike | str | None = None,
        most: int = 50,
        *,
        draws: int = 100,
        progress: Callable[[int], object] | None = None,
    ) -> LikelyInputs:
        """Trace every output back to the words behind it, exactly where there is a law.

        Parameters
        ----------
        mechanism : Mechanism
            Any.
        prior : array_like of float, shape (V,), or 'rank', optional
            How often each word is written, as for `reidentification`.
        most : int, optional
            Words an output.
        draws : int, optional
            For mechanisms without a law: draws a word from which it is learned.
        progress : callable, optional
            Called now and then with the number of words done; only where there is a law.

        Examples
        --------
        >>> from fastdx import Embedding, Tem
        >>> from fastdx.attacks import LikelyInputs
        >>> e = Embedding(["a", "b", "c"], [[0.0], [0.1], [5.0]])
        >>> LikelyInputs.of(Tem(e, 4.0), most=2).words[0].tolist()  # behind an "a": a, then b
        [0, 1]
        """
        if most < 1:
            raise ParameterError(f"most must be at least 1, got {most}")
        pi = prior_of(mechanism, prior)
        most = min(most, len(pi))
        if mechanism.has_law:
            words, joint, _ = likeliest_inputs(mechanism, pi, most, progress)
            return cls(words, joint, pi)
        if draws < 1:
            raise ParameterError(f"draws must be at least 1, got {draws}")
        count = len(pi)
        inputs = np.repeat(np.arange(count, dtype=np.uint32), draws)
        out = mechanism.privatize_ids(inputs)
        keys, times = np.unique(out.astype(np.uint64) * count + inputs, return_counts=True)
        y, w = (keys // count).astype(np.int64), (keys % count).astype(np.uint32)
        joint = pi[w] * times / draws
        order = np.lexsort((w, -joint, y))
        y, w, joint = y[order], w[order], joint[order]
        place = np.arange(len(y)) - np.searchsorted(y, y)
        kept = place < most
        table = np.full((count, most), count, dtype=np.uint32)
        numbers = np.zeros((count, most))
        table[y[kept], place[kept]] = w[kept]
        numbers[y[kept], place[kept]] = joint[kept]
        return cls(table, numbers, pi)

    def under(self, prior: _Numbers) -> LikelyInputs:
        """Return the same words in their order under another prior, shape (V,)."""
        known = (self.joint > 0) & (self.words < len(prior))
        at = np.where(known, self.words, 0)
        joint = np.where(known, self.joint / np.where(known, self.prior[at], 1) * prior[at], 0.0)
        order = np.argsort(-joint, axis=1, kind="stable")
        return LikelyInputs(np.take_along_axis(self.words, order, 1),
                            np.take_along_axis(joint, order, 1), prior)  # fmt: skip

    def log_likelihood(self, out: _Ids) -> tuple[_Ids, _Numbers]:
        """Return the words behind each output and ln Pr[output | word].

        Both have the shape (len(out), most). Where there are no more words, -inf stands beside the
        output's own id. An output that nothing explains is taken for itself.
        """
        words, joint = self.words[out], self.joint[out]
        known = (joint > 0) & (words < len(self.prior))
        words = np.where(known, words, out[:, None]).astype(np.uint32)
        logs = np.full(words.shape, -np.inf)
        logs[known] = np.log(joint[known]) - np.log(self.prior[words[known]])
        logs[~known.any(axis=1), 0] = 0.0
        return words, logs

    def rank_of(self, out: _Ids, words: _Ids) -> NDArray[np.int64]:
        """Return at which guess each word is named, given its output; beyond the last if never."""
        most = self.words.shape[1]
        ranks = np.full(len(out), most, dtype=np.int64)
        for first in range(0, len(out), 1 << 20):
            part = slice(first, first + (1 << 20))
            found = self.words[out[part]] == words[part, None]
            ranks[part] = np.where(found.any(axis=1), found.argmax(axis=1), most)
        return ranks


class BigramModel:
    """How often words are written, and which follow each other, from public texts.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words; others are left out.
    texts : iterable of str
        Public texts, like those that are to be protected.
    interpolation : float, optional
        The weight of the bigram beside the word's own frequency.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.attacks import BigramModel
    >>> e = Embedding(["a", "b"], [[0.0], [1.0]])
    >>> BigramModel(e, ["a a a b", "a b"]).frequencies.round(3).tolist()
    [0.643, 0.357]
    """

    def __init__(
        self,
        space: Embedding | WordGraph,
        texts: Iterable[str],
        *,
        interpolation: float = 0.8,
    ) -> None:
        """Count."""
        if not 0 <= interpolation < 1:
            raise ParameterError(f"interpolation must be from 0 to below 1, got {interpolation}")
        self._places = {word: i for i, word in enumerate(space.words)}
        self.space = space
        self.interpolation = interpolation
        counts = np.full(len(space), 0.5)
        pairs: list[NDArray[np.int64]] = []
        for text in texts:
            for run in self.runs(text):
                np.add.at(counts, run, 1)
                pairs.append(run[:-1].astype(np.int64) * len(space) + run[1:])
        self._counts = counts
        self.frequencies: _Numbers = counts / counts.sum()
        """Probability of every word, float64, shape (V,)."""
        joined = np.concatenate(pairs) if pairs else np.zeros(0, dtype=np.int64)
        self._pairs, self._times = np.unique(joined, return_counts=True)
        first, second = np.divmod(self._pairs, len(space))
        weights = interpolation * self._times / counts[first]
        # All words that may follow sum to 1, also behind a word that hardly ever had a follower.
        rest: _Numbers = 1 - np.bincount(first, weights, len(space)).astype(np.float64)
        self.chain = Chain(first, second, weights, rest, self.frequencies)
        """The same as sums over all words that may stand before or after a word."""

    def runs(self, text: str) -> Iterator[_Ids]:
        """Yield the known words of a text that stand side by side, as ids."""
        run: list[int] = []
        for word in tokenize(text, self.space):
            place = self._places.get(word)
            if place is None:
                if run:
                    yield np.array(run, dtype=np.uint32)
                run = []
            else:
                run.append(place)
        if run:
            yield np.array(run, dtype=np.uint32)

    def log_probability(self, first: _Ids, second: _Ids) -> _Numbers:
        """Return ln Pr[second | first] of every pair: float64, shape (len(first), len(second))."""
        keys = first.astype(np.int64)[:, None] * len(self._counts) + second.astype(np.int64)
        times = np.zeros(keys.shape)
        if len(self._pairs):
            places = np.searchsorted(self._pairs, keys).clip(max=len(self._pairs) - 1)
            times = np.where(self._pairs[places] == keys, self._times[places], 0)
        bigram = times / self._counts[first][:, None]
        rest = self.chain.rest[first][:, None]
        mixed = self.interpolation * bigram + rest * self.frequencies[second]
        logs: _Numbers = np.log(mixed)
        return logs


@dataclass(frozen=True)
class Recovered:
    """What an attacker recovers of sentences. Printed, it is a sentence."""

    words: int
    """Content words attacked."""
    frequency: float
    """The share recovered by the likeliest word for each output by itself."""
    viterbi: float
    """The share recovered by the likeliest sentence under the bigram model."""
    unchanged: float
    """The share that came back as it was written."""
    similarity: float
    """Mean cosine of word and replacement in the judge's embedding, NaN without a judge."""
    chance: float
    """The same of words and replacements that do not belong together."""
    context: float = float("nan")
    """The share recovered by the likeliest word given all outputs, NaN without a `Context`."""
    exact: float = float("nan")
    """The share recovered by the likeliest word given all outputs, exactly under the bigram model;
    NaN unless it was asked for."""

    @property
    def attack(self) -> float:
        """The share recovered by the best of the attacks."""
        return float(np.nanmax([self.frequency, self.viterbi, self.context, self.exact]))

    def __str__(self) -> str:
        """Return it as a sentence."""
        context = "" if np.isnan(self.context) else f", by context {self.context:.1%}"
        exact = "" if np.isnan(self.exact) else f", by exact posteriors {self.exact:.1%}"
        text = (f"Of {self.words:,} content words an attacker recovers {self.attack:.1%} (by "
                f"frequency {self.frequency:.1%}, by Viterbi {self.viterbi:.1%}{context}{exact}); "
                f"{self.unchanged:.1%} came back unchanged")  # fmt: skip
        if np.isnan(self.similarity):
            return f"{text}."
        return f"{text}; similarity {self.similarity:.3f}, by chance {self.chance:.3f}."


class Context(Protocol):
    """What an attacker knows of a word from the outputs around it.

    `fastdx.evaluation.ContextModel` is one, learned by a network.
    """

    def log_probability(self, out: _Ids, words: _Ids) -> _Numbers:
        """Return ln Pr[word at i is words[i, j] | outputs of a run at all places but i].

        Float64, shape (len(out), words); out is one run, shape (len(out),).
        """
        ...


def sentence_attack(
    mechanism: Mechanism,
    texts: Iterable[str],
    model: BigramModel,
    *,
    candidates: int = 50,
    judge: Embedding | None = None,
    draws: int = 100,
    stop_words: Iterable[str] = STOP_WORDS,
    inputs: LikelyInputs | None = None,
    context: Context | None = None,
    exact: bool | Likelihoods | Channel = False,
) -> Recovered:
    """Privatise texts, and recover their content words from what is released.

    The attackers know the mechanism: one takes the likeliest word for each output, by the words'
    frequencies; one takes the likeliest sentence (Viterbi) under a bigram model; with `context` a
    third one takes the likeliest word given its own output and all others around it. Since a word's
    output depends on that word alone, Pr[w | all outputs] ∝ Pr[w | the other outputs]·Pr[y|w].
    With `exact` a fourth one takes the word that is likeliest given all outputs, summed over all
    sentences: nobody who knows the bigram model and the law names more words on average.

    Parameters
    ----------
    mechanism : Mechanism
        Any.
    texts : iterable of str
        Texts that the model has not seen.
    model : BigramModel
        What the attacker knows of the language, over the mechanism's words.
    candidates : int, optional
        Words that an output is traced back to at most.
    judge : Embedding, optional
        Measures the similarity of words and replacements; another one than the mechanism's.
    draws : int, optional
        For mechanisms without a law: draws a word from which the attacker learns it.
    stop_words : iterable of str, optional
        Words that are not counted: everybody guesses them.
    inputs : LikelyInputs, optional
        Of this mechanism, where they were made before; candidates and draws are then its own.
    context : Context, optional
        What the third attacker knows of a word from what stands around it.
    exact : bool, Channel or Likelihoods, optional
        Whether to run the fourth attacker, or what he knows of this mechanism where it was computed
        before: its channel, or the likelihoods of all outputs. It takes the laws of all words.

    Returns
    -------
    Recovered
        The share of content words that each attacker names.
    """
    if tuple(model.space.words) != tuple(mechanism.space.words):
        raise ParameterError("model must be one of the mechanism's words")
    if exact and not mechanism.has_law:
        raise ParameterError("exact must be False: this mechanism has no law to compute")
    pi = model.frequencies
    if inputs is None:
        table = LikelyInputs.of(mechanism, pi, candidates, draws=draws)
    else:
        table = inputs.under(pi)
    stop = set(stop_words)
    content = np.array([word not in stop for word in mechanism.space.words])
    written, released, single, joint, around = [], [], [], [], []
    for text in texts:
        for run in model.runs(text):
            out = mechanism.privatize_ids(run)
            written.append(run)
            released.append(out)
            single.append(table.words[out, 0])
            joint.append(_viterbi(table, model, out))
            if context is not None:
                words, likelihood = table.log_likelihood(out)
                best = (likelihood + context.log_probability(out, words)).argmax(axis=1)
                around.append(words[np.arange(len(out)), best])
    if not written:
        raise ParameterError("texts must hold at least one word of the vocabulary")
    w, y, one, path = (np.concatenate(x) for x in (written, released, single, joint))
    counted = content[w]
    if not counted.any():
        raise ParameterError("texts must hold at least one content word of the vocabulary")
    w, y, one, path = w[counted], y[counted], one[counted], path[counted]
    similarity, chance = _similarity(mechanism, judge, w, y)
    named = float((np.concatenate(around)[counted] == w).mean()) if around else float("nan")
    summed = float("nan")
    if exact:
        best = _likeliest(mechanism, model, released, exact)
        summed = float((np.concatenate(best)[counted] == w).mean())
    return Recovered(len(w), float((one == w).mean()), float((path == w).mean()),
                     float((y == w).mean()), similarity, chance, named, summed)  # fmt: skip


def _likeliest(
    mechanism: Mechanism,
    model: BigramModel,
    released: list[_Ids],
    exact: bool | Likelihoods | Channel,
) -> list[NDArray[np.int64]]:
    """Return the likeliest word at each place of each run, given all outputs of the run."""
    if mechanism.skip or mechanism.consistent or isinstance(exact, Likelihoods):
        # Runs are privatised as ids: words that text skips are drawn, too.
        if not isinstance(exact, Likelihoods):
            exact = Likelihoods.of(mechanism, np.concatenate(released))
        return [marginals(model.chain, exact(out)).argmax(axis=1) for out in released]
    channel = exact if isinstance(exact, Channel) else Channel.of(mechanism)
    chain, names = model.chain, mechanism.space.words
    prior = NgramPrior.of_pairs(
        mechanism.space, chain.frequencies, chain.first, chain.second, chain.weights
    )
    return [channel.decode([names[y] for y in out], prior).best for out in released]


def _viterbi(table: LikelyInputs, model: BigramModel, out: _Ids) -> _Ids:
    """Return the likeliest words behind outputs that stand side by side."""
    every = zip(*table.log_likelihood(out), strict=True)
    steps = [(words[logs > -np.inf], logs[logs > -np.inf]) for words, logs in every]
    score = steps[0][1] + np.log(model.frequencies[steps[0][0]])
    back: list[NDArray[np.int64]] = []
    for (before, _), (words, likelihood) in pairwise(steps):
        ways = score[:, None] + model.log_probability(before, words)
        back.append(ways.argmax(axis=0))
        score = ways.max(axis=0) + likelihood
    place = int(score.argmax())
    path = [place]
    for ways_back in reversed(back):
        place = int(ways_back[place])
        path.append(place)
    pairs = zip(steps, reversed(path), strict=True)
    return np.array([words[i] for (words, _), i in pairs], dtype=np.uint32)


def mean_similarity(
    mechanism: Mechanism,
    judge: Embedding,
    prior: ArrayLike | str | None = None,
    draws: int = 20_000,
) -> tuple[float, float]:
    """Measure how near replacements are in another embedding.

    Parameters
    ----------
    mechanism : Mechanism
        Any.
    judge : Embedding
        Another embedding than the mechanism's; words that it lacks are left out.
    prior : array_like of float, shape (V,), or 'rank', optional
        How often each word is written; by default all alike.
    draws : int, optional
        Words drawn by the prior and replaced.

    Returns
    -------
    similarity, chance : float
        Mean cosine of word and replacement, unchanged ones included; and of words and replacements
        that do not belong together.
    """
    pi = prior_of(mechanism, prior)
    w = np.random.default_rng(0).choice(len(pi), draws, p=pi).astype(np.uint32)
    return _similarity(mechanism, judge, w, mechanism.privatize_ids(w))


def _similarity(
    mechanism: Mechanism, judge: Embedding | None, w: _Ids, y: _Ids
) -> tuple[float, float]:
    if judge is None:
        return float("nan"), float("nan")
    names = mechanism.space.words
    places = {word: i for i, word in enumerate(judge.words)}
    at = np.array([places.get(word, -1) for word in names])
    both = (at[w] >= 0) & (at[y] >= 0)
    if not both.any():
        raise ParameterError("judge must know some of the words")
    vectors = judge.vectors.astype(np.float64)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    a, b = at[w[both]], at[y[both]]
    apart = np.random.default_rng(0).permutation(len(b))
    return (float((vectors[a] * vectors[b]).sum(axis=1).mean()),
            float((vectors[a] * vectors[b[apart]]).sum(axis=1).mean()))  # fmt: skip
