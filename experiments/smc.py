"""The words behind a release under any model of language, by sequential Monte Carlo.

Exact sums over all texts need a model of short memory: `Channel.decode` does them for n-grams. A
neural model depends on the whole prefix. Here weighted prefixes ("particles") stand for all texts.
The target is exact: after the last word a prefix w_1 … w_n has, in expectation, the weight
p(w_1 … w_n)·Π K[w_i, y_i], and the sum of all weights is an unbiased estimate of the evidence.

- *Look-ahead* (twisted SMC: Whiteley and Lee 2014, Guarniero et al. 2017). At step i the weight of
  a prefix has the factor β_i(w_i), the probability of the outputs that follow under a bigram model;
  the next step divides by it. So β changes the variance, never the target.
- *Every continuation is weighed.* All V words behind every particle are weighed by a guess of their
  probability, times K and β. Of these at most P·V pairs N are kept, by the resampling of Fearnhead
  and Clifford (2003): pairs above a threshold keep their own weights, the others are drawn
  systematically, all with the threshold as weight. No pair is kept twice, and expectations of
  weights do not change. It takes the place of resampling by effective sample size, which draws
  copies of likely prefixes.
- *The guess is put right.* A model may need a pass of its own for the exact probability of a word
  of several tokens. It guesses it for all words, and says exactly only for the pairs that are kept;
  their weights are multiplied by exact over guess.
- *Compared with n-grams.* A few particles cannot stand for all texts, but exact sums under n-grams
  do. So each step also computes what n-grams say behind the same particles. The ratio of both tells
  what the model adds, and most of what the few particles get wrong cancels in it (`Gains`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx.channel import NgramPrior
from fastdx.exceptions import ParameterError

Numbers = NDArray[np.float64]
Ids = NDArray[np.int64]


class WordModel(Protocol):
    """A model of language that is asked about many prefixes at once.

    It holds a generation of prefixes; at first one, the empty prefix.
    """

    @property
    def grams(self) -> NDArray[Any]:
        """N-grams' own probabilities of the words behind the prefixes: shape (N, V)."""
        ...

    def begin(self) -> Numbers:
        """Start a sentence; return guesses of Pr[first word = w]: shape (1, V).

        Guesses may not be 0 where the probability is not. Rows need not sum to 1: a row that sums
        to less says how likely it is that a word follows at all.
        """
        ...

    def extend(self, parents: Ids, words: Ids) -> tuple[Numbers, Numbers]:
        """Replace the prefixes by N new ones: prefix parents[j] with words[j] appended.

        Returns
        -------
        exact : (N,)
            Pr[words[j] | prefix parents[j]].
        guesses : (N, V)
            Guesses for the words behind the new prefixes.
        """
        ...

    def end(self) -> Numbers:
        """Return for every prefix how likely it is that the sentence ends behind it: (N,)."""
        ...


class NgramWords:
    """N-grams as a model of words; its guesses are exact."""

    def __init__(self, prior: NgramPrior) -> None:
        self._prior = prior
        self._names = prior.space.words
        self._memory = max(prior.order - 1, 0)
        self._prefixes: list[tuple[int, ...]] = [()]
        self._rows: Numbers = np.zeros((0, 0))

    @property
    def grams(self) -> Numbers:
        return self._rows

    def begin(self) -> Numbers:
        self._prefixes = [()]
        return self._look_up()

    def _look_up(self) -> Numbers:
        # A beginning has a history of its own, so a prefix of one word is not a bigram's history.
        known: dict[tuple[int, ...], Numbers] = {}
        for p in self._prefixes:
            if p not in known:
                known[p] = self._prior.next([self._names[w] for w in p])
        self._rows = np.array([known[p] for p in self._prefixes])
        return self._rows

    def extend(self, parents: Ids, words: Ids) -> tuple[Numbers, Numbers]:
        exact = self._rows[parents, words]
        # One word more than the order needs tells a beginning from what stands within a sentence.
        kept = self._memory + 1
        self._prefixes = [(*self._prefixes[p], int(w))[-kept:]
                          for p, w in zip(parents, words, strict=True)]  # fmt: skip
        return exact, self._look_up()

    def end(self) -> Numbers:
        return np.ones(len(self._prefixes))


class LookAhead:
    """Backward messages of a bigram model: β_i(u) = Σ_w Pr[w | u]·K[w, y_{i+1}]·β_{i+1}(w).

    Rows Pr[· | u] are λ(u)·b and corrections where a row differs from that, which are few for
    interpolated n-grams: a message costs one pass over the pairs that were seen.
    """

    def __init__(self, base: Numbers, shares: Numbers, rows: Ids, columns: Ids, rest: Numbers):
        self.base, self.shares = base, shares
        self.rows, self.columns, self.rest = rows, columns, rest

    @classmethod
    def of(cls, prior: NgramPrior) -> LookAhead:
        """Take the rows of a model of order 1 or 2."""
        if prior.order > 2:
            raise ParameterError(f"prior must be of order 1 or 2 to look ahead, not {prior.order}")
        names = prior.space.words
        # Hardly anything was seen behind the rarest word, so its row is the base.
        base = prior.next([names[int(prior.frequencies.argmin())]])
        shares = np.empty(len(names))
        rows, columns, rest = [], [], []
        for u, name in enumerate(names):
            row = prior.next([name])
            shares[u] = np.median(row / base)
            left = row - shares[u] * base
            (differs,) = np.nonzero(np.abs(left) > 1e-9 * row)
            rows.append(np.full(len(differs), u))
            columns.append(differs)
            rest.append(left[differs])
        return cls(base, shares, np.concatenate(rows), np.concatenate(columns),
                   np.concatenate(rest))  # fmt: skip

    def messages(self, likelihoods: Numbers) -> Numbers:
        """Return β of every place: shape (n, V), each row up to a factor, the last one all ones.

        Parameters
        ----------
        likelihoods : array of float, shape (n, V)
            K[·, y_i] of every place.
        """
        made = np.ones_like(likelihoods)
        for i in range(len(likelihoods) - 2, -1, -1):
            x = likelihoods[i + 1] * made[i + 1]
            found = np.bincount(self.rows, self.rest * x[self.columns], len(self.base))
            # Of no pairs bincount makes integers.
            found = found + self.shares * (self.base @ x)
            # Differences of large numbers may end below 0; weights must not.
            found = np.maximum(found, 1e-12 * found.max())
            made[i] = found / found.max()
        return made


def resample(weights: Numbers, count: int, rng: np.random.Generator) -> tuple[Ids, Numbers]:
    """Keep at most `count` of many weighted things, none twice (Fearnhead and Clifford 2003).

    Returns
    -------
    kept : (m,)
        Places of what is kept, ascending; all with a weight if these are at most `count`.
    weights : (m,)
        New weights: in expectation every thing has its old one.
    """
    (some,) = np.nonzero(weights)
    if len(some) <= count:
        return some, weights[some]
    total = weights.sum()
    largest = np.sort(np.partition(weights, -count)[-count:])[::-1]
    # Above the threshold c = (what the j largest leave)/(count - j) things keep their weights.
    above = np.concatenate([[0.0], np.cumsum(largest)[:-1]])
    left = np.maximum(total - above, 0.0) / (count - np.arange(count))
    j = int(np.argmax(largest <= left))
    threshold = left[j]
    order = np.argpartition(-weights, j)[:j] if j else np.zeros(0, dtype=np.int64)
    rest = weights.copy()
    rest[order] = 0.0
    steps = np.cumsum(rest)
    places = (np.arange(count - j) + rng.random()) * (steps[-1] / (count - j))
    drawn = np.searchsorted(steps, places, side="right")
    # The last step may lie above the last sum by rounding.
    drawn = np.minimum(drawn, np.nonzero(rest)[0][-1])
    kept = np.concatenate([order, drawn])
    found = np.concatenate([weights[order], np.full(count - j, threshold)])
    ascending = np.argsort(kept, kind="stable")
    return kept[ascending], found[ascending]


class Gains(NamedTuple):
    """Of every place and word: ln of what the model says over what n-grams say, same particles."""

    before: Numbers
    """Of the word behind the prefixes, the outputs behind it being left to the look-ahead: shape
    (n, V)."""
    behind: Numbers
    """Of the next output behind the prefixes and the word; of the sentence's end behind the last
    word. Less the mean of all; 0 for words that no particle has: shape (n, V)."""


def _gain(words: Ids, model: Numbers, grams: Numbers, count: int) -> Numbers:
    """ln of the ratio of two weights of every word, less that of the sums; 0 where there are none.

    Particles may share a word: their weights are added up.
    """
    above, below = (np.bincount(words, x, count) for x in (model, grams))
    found: Numbers = np.zeros(count)
    some = (above > 0) & (below > 0)
    found[some] = np.log(above[some] / below[some]) - np.log(model.sum() / grams.sum())
    return found


@dataclass(frozen=True)
class Particles:
    """What a run of sequential Monte Carlo found."""

    paths: Ids
    """Prefixes that were kept to the end: shape (N, n)."""
    weights: Numbers
    """Their weights, which sum to 1: shape (N,)."""
    log_evidence: float
    """ln of the estimate of Pr[release]; the estimate itself is unbiased."""
    seen: Numbers
    """Pr[word at place i | what was known at step i]: all that stands before place i under the
    model, all that stands behind it under the look-ahead: shape (n, V)."""
    gains: Gains
    """The model adds this to n-grams."""

    def marginals(self) -> Numbers:
        """Return the posterior of every place by the paths that were kept: shape (n, V)."""
        found = np.zeros_like(self.seen)
        for row, words in zip(found, self.paths.T, strict=True):
            np.add.at(row, words, self.weights)
        return found


def decode(
    model: WordModel, likelihoods: Numbers, ahead: Numbers, count: int, rng: np.random.Generator
) -> Particles:
    """Estimate the posterior of the words behind a release.

    Parameters
    ----------
    model : WordModel
        What the reader knows of the language.
    likelihoods : array of float, shape (n, V)
        K[·, y_i] of every place.
    ahead : array of float, shape (n, V)
        β of every place, as `LookAhead.messages` returns it; ones for none. The last row must be
        ones.
    count : int
        Particles.
    rng : numpy.random.Generator
        Draws what is kept.
    """
    if not len(likelihoods) or likelihoods.shape != ahead.shape or not (ahead[-1] == 1).all():
        raise ParameterError("likelihoods and ahead must be of the same places, at least one")
    guesses = model.begin()
    weights, twists, log_total = np.ones(1), np.ones(1), 0.0
    paths = np.zeros((1, 0), dtype=np.int64)
    seen = np.empty_like(likelihoods)
    gains = Gains(np.zeros_like(likelihoods), np.zeros_like(likelihoods))
    for i, (likelihood, beta) in enumerate(zip(likelihoods, ahead, strict=True)):
        factors, own = likelihood * beta, weights / twists
        pool = guesses * factors * own[:, None]
        total = pool.sum()
        if not total > 0:
            raise ParameterError("likelihoods must leave words that the model allows")
        log_total += float(np.log(total))
        if i:
            by_grams = (model.grams @ factors) * own
            gains.behind[i - 1] = _gain(paths[:, -1], pool.sum(axis=1), by_grams, len(beta))
        by_grams = (own @ model.grams) * factors
        pool /= total
        seen[i] = pool.sum(axis=0)
        some = (seen[i] > 0) & (by_grams > 0)
        gains.before[i, some] = np.log(seen[i, some] / by_grams[some] * by_grams.sum())
        kept, weights = resample(pool.ravel(), count, rng)
        parents, words = np.divmod(kept, pool.shape[1])
        guessed = guesses[parents, words]
        exact, guesses = model.extend(parents, words)
        weights = weights * (exact / guessed)
        twists = beta[words]
        paths = np.concatenate([paths[parents], words[:, None]], axis=1)
    ended = weights * model.end()
    gains.behind[-1] = _gain(paths[:, -1], ended, weights, len(ahead[-1]))
    total = ended.sum()
    return Particles(paths, ended / total, log_total + float(np.log(total)), seen, gains)


def mixture(parts: Sequence[ArrayLike], rounds: int = 200) -> Numbers:
    """Return the shares of several models that make data likeliest, by EM.

    Parameters
    ----------
    parts : sequence of array_like
        Of each model, the probabilities that it gave to what was there.
    """
    table = np.stack([np.asarray(p, dtype=np.float64) for p in parts])
    shares = np.full(len(table), 1 / len(table))
    for _ in range(rounds):
        # What no model thought possible says nothing of the shares.
        by = shares[:, None] * table + 1e-300
        shares = (by / by.sum(axis=0)).mean(axis=1)
    return shares


def choice(parts: Sequence[Numbers], truths: Sequence[int], ridge: float = 2.0) -> Numbers:
    """Return the weights under which true words are likeliest: a conditional logit, by Newton.

    Pr[rival] is in proportion to exp(weights @ parts). The first part alone is what is assumed
    where data say little.

    Parameters
    ----------
    parts : sequence of array, shape (P, rivals) each
        What is known of the rivals at each place.
    truths : sequence of int
        Which rival is the true one.
    ridge : float, optional
        Of the squared distance of the weights from that assumption.
    """
    first = np.eye(len(parts[0]))[0]
    weights = first.copy()
    for _ in range(30):
        slope, curve = -2 * ridge * (weights - first), -2 * ridge * np.eye(len(first))
        for part, truth in zip(parts, truths, strict=True):
            scores = weights @ part
            likely = np.exp(scores - scores.max())
            likely /= likely.sum()
            mean = part @ likely
            slope += part[:, truth] - mean
            curve -= (part * likely) @ part.T - np.outer(mean, mean)
        weights = weights - np.linalg.solve(curve, slope)
    return weights
