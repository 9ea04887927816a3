"""Attacks that count the outputs of one repeated word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastdx._shared.checks import at_least
from fastdx.lab.attacks import LikelyInputs
from fastdx.mechanisms import Mechanism


def _outputs(mechanism: Mechanism, words: Sequence[str], times: int) -> list[list[str]]:
    """Return the outputs of each word, which is repeated in a text of its own."""
    at_least("times", times, 1)
    return [t.split() for t in mechanism.privatize([" ".join([word] * times) for word in words])]


def frequency_attack(mechanism: Mechanism, words: Sequence[str], times: int) -> NDArray[np.bool_]:
    """Let an observer name words by the most frequent of their outputs (the first one at ties).

    Each of `words`, which the tokeniser must not split, is repeated so many `times` in a text of
    its own; with ``consistent=True`` a mechanism draws once for each. Returns bool, shape (words,):
    whether the word was named.
    """
    outputs = _outputs(mechanism, words, times)
    guesses = [Counter(out).most_common(1)[0][0] if out else None for out in outputs]
    return np.array([g == w for g, w in zip(guesses, words, strict=True)], dtype=np.bool_)


def likelihood_attack(
    mechanism: Mechanism,
    words: Sequence[str],
    times: Sequence[int],
    *,
    inputs: LikelyInputs | None = None,
) -> NDArray[np.bool_]:
    """Let an attacker who knows the law name words by the likeliest explanation of their outputs.

    That is the word with the largest Σ ln Pr[output|word] (the smallest id at ties). The prior is
    uniform over the words. The attack is exact for a mechanism with a law, and takes one pass over
    the laws of all words. For other mechanisms the attacker knows `inputs`, or learns from draws.
    Each of the numbers in `times` has draws of its own. Returns bool, shape (len(times), words):
    whether the word was named.
    """
    place = {word: i for i, word in enumerate(mechanism.space.words)}
    outputs = [out for n in times for out in _outputs(mechanism, words, n)]
    ids = [np.array([place[y] for y in out if y in place], dtype=np.int64) for out in outputs]
    rows = np.repeat(np.arange(len(ids)), [len(i) for i in ids])
    entries = (np.ones(len(rows)), (rows, np.concatenate([np.zeros(0, dtype=np.int64), *ids])))
    # The sparse array adds up equal outputs.
    counts = sparse.csr_array(entries, shape=(len(outputs), len(place)))
    if mechanism.has_law:
        best = _likeliest(mechanism, counts)
    else:
        known = LikelyInputs.of(mechanism, draws=1000) if inputs is None else inputs
        best = np.array([_shortlisted(known, counts[[row]]) for row in range(len(outputs))])
    seen = np.array([len(i) > 0 for i in ids], dtype=np.bool_)
    truth = np.array([place.get(word, -1) for word in words] * len(times))
    hits: NDArray[np.bool_] = (best == truth) & seen
    return hits.reshape(len(times), len(words))


def _likeliest(mechanism: Mechanism, counts: Any) -> NDArray[np.int64]:
    """Return the word that explains each row of outputs best, by the law."""
    best = np.zeros(counts.shape[0], dtype=np.int64)
    most = np.full(counts.shape[0], -np.inf)
    for w, word in enumerate(mechanism.space.words):
        with np.errstate(divide="ignore"):
            score = counts @ np.log(mechanism.probabilities(word))
        better = score > most
        best[better], most[better] = w, score[better]
    return best


def _shortlisted(inputs: LikelyInputs, counts: Any) -> int:
    """Return the likely input that explains a row of outputs best."""
    if not counts.nnz:
        return -1
    words, logs = inputs.log_likelihood(counts.indices.astype(np.uint32))
    known = logs > -np.inf
    # A word that is not among an output's candidates gets half the least probability of these.
    least = np.where(known, logs, np.inf).min(axis=1) - np.log(2)
    more = np.where(known, (logs - least[:, None]) * counts.data[:, None], 0.0)
    names, at = np.unique(words, return_inverse=True)
    score = np.bincount(at.ravel(), weights=more.ravel(), minlength=len(names))
    return int(names[score.argmax()])
