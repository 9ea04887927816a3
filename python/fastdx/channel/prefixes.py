"""Any model of language as a prior: all texts are written out, so only few words can be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastdx._core import NgramPrior
from fastdx.channel.receiver import entropy
from fastdx.exceptions import ParameterError

if TYPE_CHECKING:
    from fastdx._core import ChannelCore
    from fastdx._types import LanguageModel
    from fastdx.mechanisms import Mechanism

_Numbers = NDArray[np.float64]

MOST_TEXTS = 1 << 22
"""Texts that are written out at most: one word over four million, seven over eight."""


def written_out(
    core: ChannelCore, mechanism: Mechanism, text: str | list[str], model: LanguageModel
) -> Prefixes:
    """Write out all texts behind a release, by a model that is asked prefix by prefix."""
    if mechanism.skip or mechanism.consistent:
        raise ParameterError("prior must be an NgramPrior for skip= and consistent=")
    words = mechanism.tokenize(text) if isinstance(text, str) else text
    count = len(mechanism.space)
    if count ** len(words) > MOST_TEXTS:
        raise ParameterError(
            f"prior must be an NgramPrior for {len(words)} words over {count:,}: under any other "
            f"model all texts are written out, at most {MOST_TEXTS:,}"
        )
    names = mechanism.space.words
    known = set(names)
    if not all(word in known for word in words):
        raise ParameterError("text must be a release of this mechanism, of words that it knows")
    # The likelihoods are the same whatever the prior.
    seen = core.decode(text, NgramPrior.of_frequencies(mechanism.space))
    table = np.array([seen.likelihood(i) for i in range(len(words))])
    paths, logs = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for i in range(len(words)):
        with np.errstate(divide="ignore"):
            likelihood = np.log(table[i])
        steps = np.empty((len(paths), count))
        for row, prefix in enumerate(paths):
            after = np.asarray(model.log_next(tuple(names[w] for w in prefix)), dtype=np.float64)
            if after.shape != (count,) or np.isnan(after).any():
                raise ParameterError(f"prior's log_next must return {count} numbers")
            steps[row] = logs[row] + after + likelihood
        rows, ids = np.nonzero(steps > -np.inf)
        paths = np.concatenate([paths[rows], ids[:, None]], axis=1)
        logs = steps[rows, ids]
    if not len(logs):
        raise ParameterError("text must be a release of this mechanism, of words the prior allows")
    evidence = float(np.logaddexp.reduce(logs))
    return Prefixes(paths, np.exp(logs - evidence), evidence, mechanism, text, likelihoods=table)


class Prefixes:
    """All texts and their probabilities: what `Posterior` asks a core for."""

    def __init__(
        self,
        paths: NDArray[np.int64],
        weights: _Numbers,
        evidence: float,
        mechanism: Mechanism,
        text: str | list[str],
        *,
        likelihoods: _Numbers,
    ) -> None:
        self.paths, self.weights, self.log_evidence = paths, weights, evidence
        self.exact = True
        self._names = mechanism.space.words
        self._text = text
        self._likelihoods = likelihoods
        self._spans = mechanism._word_spans(text) if isinstance(text, str) else []
        shape = (paths.shape[1], len(mechanism.space))
        table = np.zeros(shape)
        for i in range(shape[0]):
            table[i] = np.bincount(paths[:, i], weights, shape[1])
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def words(self) -> tuple[NDArray[Any], ...]:
        """Return what is known of every word by itself."""
        count = len(self)
        bits = [entropy(p) for p in self._table]
        return (self._table.argmax(axis=1).astype(np.uint32), self._table.max(axis=1),
                np.array(bits), np.zeros(count), np.zeros(count, dtype=np.bool_))  # fmt: skip

    def marginal(self, place: int) -> _Numbers:
        """Return the posterior of a word."""
        row: _Numbers = self._table[place]
        return row.copy()

    def likelihood(self, place: int) -> _Numbers:
        """Return the probability of the release at a place given every word."""
        row: _Numbers = self._likelihoods[place]
        return row.copy()

    @property
    def expected_right(self) -> float:
        """The expected share of the words that are likeliest."""
        return float(self._table.max(axis=1).mean()) if len(self) else float("nan")

    def bits_left(self) -> float:
        """Return the entropy of the text."""
        return entropy(self.weights)

    def expected_counts(self) -> _Numbers:
        """Return how often each word stands there."""
        counts: _Numbers = self._table.sum(axis=0)
        return counts

    def means(self, vectors: ArrayLike) -> _Numbers:
        """Return the means of vectors."""
        return self._table @ np.asarray(vectors, dtype=np.float64)

    def _with(self, path: NDArray[np.int64]) -> Any:
        words = [self._names[i] for i in path]
        if not isinstance(self._text, str):
            return words
        parts, done = [], 0
        for (start, end), word in zip(self._spans, words, strict=True):
            parts += [self._text[done:start], word]
            done = end
        return "".join([*parts, self._text[done:]])

    def sample(self, size: SupportsIndex, seed: SupportsIndex | None = None) -> list[Any]:
        """Return texts drawn by their probabilities."""
        rng = np.random.default_rng(None if seed is None else seed.__index__())
        drawn = rng.choice(len(self.weights), size.__index__(), p=self.weights)
        return [self._with(self.paths[i]) for i in drawn]

    def likeliest(self) -> NDArray[np.uint32]:
        """Return the ids of the likeliest text."""
        found: NDArray[np.uint32] = self.paths[self.weights.argmax()].astype(np.uint32)
        return found

    def viterbi(self) -> Any:
        """Return the likeliest text."""
        return self._with(self.paths[self.weights.argmax()])
