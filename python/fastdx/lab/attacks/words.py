"""Attacks on single words by an adversary who knows the mechanism and the words' frequencies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from fastdx._core import Embedding
from fastdx._shared.checks import at_least, check_type, inside
from fastdx._types import Bits
from fastdx.channel.guesses import best_guess, likeliest_inputs, prior_of
from fastdx.channel.law import Prior, by_rank
from fastdx.exceptions import ParameterError
from fastdx.lab.limit import entropy
from fastdx.mechanisms import Mechanism

_Ids = NDArray[np.uint32]
_Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Reidentification:
    """How often an attacker who sees one output names the word. It prints as a sentence."""

    success: dict[int, float]
    """For each number of guesses, the probability that the word is among them."""
    low: dict[int, float]
    """Lower bounds on `success`; equal to it if `exact`."""
    high: dict[int, float]
    """Upper bounds on `success` for an attacker who knows the mechanism only from the draws; equal
    to it if `exact`."""
    exact: bool
    """Whether the numbers are sums over the mechanism's law. False: they are counted in draws."""
    worst_posterior: float
    """The largest posterior probability of a word given one output; NaN unless `exact`."""
    word: str | None
    """The word with the largest posterior probability."""
    output: str | None
    """The output at which that word has it."""

    def __str__(self) -> str:
        """Return it as a sentence."""
        parts = [f"{share:.3f} by {guesses} guesses" for guesses, share in self.success.items()]
        text = f"The word is named with probability {', '.join(parts)}"
        if not self.exact:
            return f"{text} (counted in draws)."
        return (f"{text}; the surest guess is {self.word!r} for {self.output!r}, right with "
                f"probability {self.worst_posterior:.3f}.")  # fmt: skip


def reidentification(
    mechanism: Mechanism,
    prior: Prior = None,
    guesses: SupportsIndex | Iterable[SupportsIndex] = 1,
    *,
    draws: int = 200,
    confidence: float = 0.99,
) -> Reidentification:
    """Measure how often the best attacker names the word that was written, given one output.

    The result is exact for mechanisms with a law: the sum over all outputs y of the g largest
    π_w·Pr[y|w]. For other mechanisms the attacker learns from half of `draws` draws of every word
    and is tested on the other half. He finds no more than the best attacker; the intervals are
    exact.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        π, how often each word is written. By default all words are equally likely. 'rank' is
        1/(rank + 2.7), for vocabularies in order of frequency. An `NgramPrior` gives its own
        frequencies.
    guesses : int or iterable of int, optional
        The number of words that the attacker may name.
    draws : int, optional
        Draws per word, if the mechanism has no law.
    confidence : float, optional
        The confidence of the intervals, if the mechanism has no law.
    """
    check_type("mechanism", mechanism, Mechanism)
    mechanism._check_one_law()
    numbers = [guesses] if isinstance(guesses, SupportsIndex) else list(guesses)
    wanted = sorted({int(g.__index__()) for g in numbers})
    count = len(mechanism.space)
    if not wanted or wanted[0] < 1:
        raise ParameterError(f"guesses must be at least 1, got {wanted}")
    most = min(wanted[-1], count)
    pi = prior_of(mechanism, prior)
    if mechanism.has_law:
        named, posterior, word, output = best_guess(mechanism, pi, most)
        success = {g: float(named[min(g, most) - 1]) for g in wanted}
        return Reidentification(success, success, success, True, posterior, word, output)
    at_least("draws", draws, 2)
    inside("confidence", confidence)
    table = LikelyInputs.of(mechanism, pi, most, draws=draws // 2)
    tested = np.repeat(np.arange(count, dtype=np.uint32), draws - draws // 2)
    out = mechanism.privatize_ids(tested).reshape(count, -1)
    ranks = np.full(out.shape, most)
    for w, seen in enumerate(out):
        draw, guess = np.nonzero(table.words[seen] == w)
        ranks[w, draw] = guess
    result: dict[str, dict[int, float]] = {"success": {}, "low": {}, "high": {}}
    for g in wanted:
        hits = ranks < g
        result["success"][g] = float(hits.mean(axis=1) @ pi)
        # Hoeffding's bound for a weighted sum holds exactly for every prior.
        each = hits.shape[1]
        width = float(np.sqrt(np.log(2 / (1 - confidence)) * (pi**2).sum() / (2 * each)))
        result["low"][g] = max(0.0, result["success"][g] - width)
        result["high"][g] = min(1.0, result["success"][g] + width)
    return Reidentification(**result, exact=False, worst_posterior=float("nan"), word=None,
                            output=None)  # fmt: skip


@dataclass(frozen=True)
class LikelyInputs:
    """The words that best explain each output: an attacker's knowledge of a mechanism.

    `of` makes it in one pass over all laws; several attacks can share it.
    """

    words: _Ids
    """For each output the ids of words, by their joint probability with it, largest first; V if
    there are fewer. Shape (V, most)."""
    joint: _Numbers
    """π_w·Pr[y|w] of each of these words, shape (V, most)."""
    prior: _Numbers
    """π, shape (V,)."""

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        prior: Prior = None,
        most: int = 50,
        *,
        draws: int = 100,
    ) -> LikelyInputs:
        """Trace every output back to its likeliest words, exactly if the mechanism has a law.

        Parameters
        ----------
        mechanism, prior
            As for `reidentification`.
        most : int, optional
            The most words per output.
        draws : int, optional
            Draws per word from which a mechanism without a law is learned.
        """
        at_least("most", most, 1)
        mechanism._check_one_law()
        pi = prior_of(mechanism, prior)
        most = min(most, len(pi))
        if mechanism.has_law:
            words, joint, _ = likeliest_inputs(mechanism, pi, most)
            return cls(words, joint, pi)
        at_least("draws", draws, 1)
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
        """Return these words sorted again under another prior, of shape (V,)."""
        known = (self.joint > 0) & (self.words < len(prior))
        at = np.where(known, self.words, 0)
        joint = np.where(known, self.joint / np.where(known, self.prior[at], 1) * prior[at], 0.0)
        order = np.argsort(-joint, axis=1, kind="stable")
        return LikelyInputs(np.take_along_axis(self.words, order, 1),
                            np.take_along_axis(joint, order, 1), prior)  # fmt: skip

    def log_likelihood(self, out: _Ids) -> tuple[_Ids, _Numbers]:
        """Return the likely words of each output and ln Pr[output | word].

        Both arrays have the shape (len(out), most). Places without a word hold the output's own id
        and -inf. If no word explains an output, the output itself gets 0.
        """
        words, joint = self.words[out], self.joint[out]
        known = (joint > 0) & (words < len(self.prior))
        words = np.where(known, words, out[:, None]).astype(np.uint32)
        logs = np.full(words.shape, -np.inf)
        logs[known] = np.log(joint[known]) - np.log(self.prior[words[known]])
        logs[~known.any(axis=1), 0] = 0.0
        return words, logs


def _unseen(once: NDArray[np.int64], draws: int) -> _Numbers:
    """Return Good and Turing's share of outputs that were not drawn."""
    share: _Numbers = np.minimum(np.maximum(once, 0.5) / draws, 1.0)
    return share


def drawn_bits(mechanism: Mechanism, draws: int, prior: Prior = "rank") -> Bits:
    """Estimate the bits that a release tells of a word from draws, of noise without a law.

    Bits are convex in the law, so those of relative frequencies, ``high``, are at least the true
    ones in expectation. ``low`` is what a draw tells a reader who estimated the law without it, so
    at most the true ones in expectation (Barber and Agakov 2003). His estimate is (1 - g)·c/n +
    g/V: of n draws, the share c/n that was this output, less Good and Turing's share g of what was
    not drawn (outputs drawn once, divided by n), which all outputs share evenly.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism; `Channel.bits` is exact where there is a law.
    draws : int
        Draws of every word, at least two.
    prior : optional
        As for `Channel.bits`.

    Returns
    -------
    Bits
        The middle of the interval, with ``.low``, ``.high`` and, as ``.sampled``, the draws.

    Examples
    --------
    >>> from fastdx import Embedding, MultivariateLaplace
    >>> from fastdx.lab.attacks import drawn_bits
    >>> e = Embedding(["a", "b"], [[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    >>> print(drawn_bits(MultivariateLaplace(e, 9.0, seed=1), 1000, [1, 1]))
    1.00 (1.00 to 1.00) bits
    """
    check_type("mechanism", mechanism, Mechanism)
    mechanism._check_one_law()
    at_least("draws", draws, 2)
    pi = by_rank(prior, count := len(mechanism.space))
    seen = [np.unique(mechanism.sample(word, draws), return_counts=True)
            for word in mechanism.space.words]  # fmt: skip
    w = np.repeat(np.arange(count), [len(outputs) for outputs, _ in seen])
    y, c = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    share, once = c / draws, np.bincount(w[c == 1], minlength=count)
    joint, possible = pi[w] * share, count - len(mechanism.excluded)
    drawn = np.bincount(y, joint, count).astype(np.float64)
    high = entropy(drawn) + float(joint @ np.log2(share))
    rest = _unseen(once, draws) / possible
    kept = share * (1 - rest * possible)[w]
    # The law without one of the draws of this output, and the outputs of all words under it.
    unseen = _unseen(once[w] - (c == 1) + (c == 2), draws - 1)
    without = (1 - unseen) * (c - 1) / (draws - 1) + unseen / possible
    outputs = np.bincount(y, pi[w] * kept, count)[y] + pi @ rest
    outputs += pi[w] * (without - kept - rest[w])
    low, high = max(float(joint @ np.log2(without / outputs)), 0.0), max(high, 0.0)
    low = min(low, high)
    return Bits((low + high) / 2, low, high, draws)


def similarity(
    mechanism: Mechanism, judge: Embedding | None, w: _Ids, y: _Ids
) -> tuple[float, float]:
    """Return the mean cosine of words and their outputs, and of pairs put together at random."""
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
