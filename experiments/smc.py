"""The words behind a release under any model of language, by sequential Monte Carlo.

Exact sums over all texts need a model of short memory: `Channel.decode` does them for n-grams. A
neural model depends on the whole prefix. Here weighted prefixes ("particles") stand for all texts.
The target is exact: after the last word a prefix w_1 … w_n has, in expectation, the weight
p(w_1 … w_n)·Π K[w_i, y_i], and the sum of all weights is an unbiased estimate of the evidence.

- *Look-ahead* (twisted SMC: Whiteley and Lee 2014, Guarniero et al. 2017). At step i the weight of
  a prefix has the factor β_i(w_i), the probability of the outputs that follow under a bigram model;
  the next step divides by it. So β changes the variance, never the target.
- *Every continuation is weighed.* All V words behind every particle are weighed by their
  probability, K and β. Of these at most P·V pairs N are kept, by the resampling of Fearnhead and
  Clifford (2003): pairs above a threshold keep their own weights, the others are drawn
  systematically, all with the threshold as weight. No pair is kept twice, and expectations of
  weights do not change. It takes the place of resampling by effective sample size, which draws
  copies of likely prefixes.
- *Compared with n-grams.* A few particles cannot stand for all texts, but exact sums under n-grams
  do. So each step also computes what n-grams say behind the same particles. The ratio of both tells
  what the model adds, and most of what the few particles get wrong cancels in it (`Gains`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack

from fastdx.channel import NgramPrior
from fastdx.exceptions import ParameterError

Numbers = NDArray[np.float64]
Ids = NDArray[np.int64]
Model = Callable[[tuple[int, ...]], Numbers]
"""A model of language: Pr[next word = w | prefix] of every word, shape (V,)."""


def ngrams(prior: NgramPrior) -> Model:
    """N-grams as a model."""
    names = prior.space.words

    @lru_cache(maxsize=256)
    def behind(last: tuple[int, ...]) -> Numbers:
        return prior.next([names[w] for w in last])

    # One word more than the order needs tells a beginning from what stands within a sentence.
    return lambda prefix: behind(prefix[-prior.order :])


class LookAhead:
    """Backward messages of a bigram model: β_i(u) = Σ_w Pr[w | u]·K[w, y_{i+1}]·β_{i+1}(w).

    Rows Pr[· | u] are λ(u)·b and corrections where a row differs from that, which are few for
    interpolated n-grams: a message costs one pass over the pairs that were seen.
    """

    def __init__(self, prior: NgramPrior) -> None:
        if prior.order > 2:
            raise ParameterError(f"prior must be of order 1 or 2 to look ahead, not {prior.order}")
        names = prior.space.words
        # Hardly anything was seen behind the rarest word, so its row is the base.
        self.base = prior.next([names[int(prior.frequencies.argmin())]])
        self.shares = np.empty(len(names))
        rest = []
        for u, name in enumerate(names):
            row = prior.next([name])
            self.shares[u] = np.median(row / self.base)
            left = row - self.shares[u] * self.base
            left[np.abs(left) <= 1e-9 * row] = 0.0
            rest.append(csr_array(left[None]))
        self.rest = vstack(rest, format="csr")

    def messages(self, likelihoods: Numbers) -> Numbers:
        """Return β of every place, up to a factor; those of the last place are ones.

        Parameters
        ----------
        likelihoods : array of float, shape (n, V) or (n, V, texts)
            K[·, y_i] of every place.
        """
        made = np.ones_like(likelihoods)
        for i in range(len(likelihoods) - 2, -1, -1):
            x = likelihoods[i + 1] * made[i + 1]
            found = np.multiply.outer(self.shares, self.base @ x) + self.rest @ x
            # Differences of large numbers may end below 0; weights must not.
            made[i] = np.maximum(found / found.max(axis=0), 1e-12)
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
    """Of the next output behind the prefixes and the word. Less the mean of all; 0 for words that
    no particle has, and at the last place: shape (n, V)."""


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
    gains: Gains
    """The model adds this to n-grams."""

    def marginals(self) -> Numbers:
        """Return the posterior of every place by the paths that were kept: shape (n, V)."""
        found = np.zeros_like(self.gains.before)
        for row, words in zip(found, self.paths.T, strict=True):
            np.add.at(row, words, self.weights)
        return found


def decode(
    model: Model,
    grams: Model,
    likelihoods: Numbers,
    ahead: Numbers,
    *,
    count: int,
    rng: np.random.Generator,
) -> Particles:
    """Estimate the posterior of the words behind a release.

    Parameters
    ----------
    model, grams : callable
        What the reader knows of the language, and n-grams beside which it stands.
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
    weights, twists, log_total = np.ones(1), np.ones(1), 0.0
    paths: list[tuple[int, ...]] = [()]
    gains = Gains(np.zeros_like(likelihoods), np.zeros_like(likelihoods))
    for i, (likelihood, beta) in enumerate(zip(likelihoods, ahead, strict=True)):
        rows, plain = (np.array([one(p) for p in paths]) for one in (model, grams))
        factors, own = likelihood * beta, weights / twists
        pool = rows * factors * own[:, None]
        total = pool.sum()
        if not total > 0:
            raise ParameterError("likelihoods must leave words that the model allows")
        log_total += float(np.log(total))
        if i:
            last = np.array([p[-1] for p in paths])
            by_grams = (plain @ factors) * own
            gains.behind[i - 1] = _gain(last, pool.sum(axis=1), by_grams, len(beta))
        by_grams = (own @ plain) * factors
        pool /= total
        seen = pool.sum(axis=0)
        some = (seen > 0) & (by_grams > 0)
        gains.before[i, some] = np.log(seen[some] / by_grams[some] * by_grams.sum())
        kept, weights = resample(pool.ravel(), count, rng)
        parents, words = np.divmod(kept, pool.shape[1])
        twists = beta[words]
        paths = [(*paths[p], w) for p, w in zip(parents.tolist(), words.tolist(), strict=True)]
    total = weights.sum()
    return Particles(np.array(paths), weights / total, log_total + float(np.log(total)), gains)


def choice(parts: Sequence[Numbers], truths: Sequence[int], ridge: float = 2.0) -> Numbers:
    """Return the weights under which true words are likeliest: a conditional logit.

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
    first, rivals = np.eye(len(parts[0]))[0], np.hstack(parts)
    begin = np.cumsum([0, *(part.shape[1] for part in parts[:-1])])

    def surprise(weights: Numbers) -> float:
        scores = weights @ rivals
        said = scores[begin + truths] - np.logaddexp.reduceat(scores, begin)
        return float(ridge * ((weights - first) ** 2).sum() - said.sum())

    return np.asarray(minimize(surprise, first).x)
