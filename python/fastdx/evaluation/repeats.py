"""What counting the outputs of one word recovers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastdx.attacks import LikelyInputs
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

__all__ = ["frequency_attack", "likelihood_attack"]

SHORTLIST = 10
"""Words whose likelihood is computed exactly."""


def _outputs(mechanism: Mechanism, words: Sequence[str], times: int) -> list[list[str]]:
    """What is released of each word, repeated in a text of its own."""
    if times < 1:
        raise ParameterError(f"times must be at least 1, got {times}")
    return [t.split() for t in mechanism.privatize([" ".join([word] * times) for word in words])]


def frequency_attack(mechanism: Mechanism, words: Sequence[str], times: int) -> NDArray[np.bool_]:
    """Let an observer name words by the most frequent of their outputs.

    Parameters
    ----------
    mechanism : Mechanism
        Any; with ``consistent=True`` each text of one word repeated is drawn once.
    words : sequence of str
        Words that the tokeniser leaves whole.
    times : int
        Outputs of each word.

    Returns
    -------
    ndarray of bool, shape (words,)
        Whether the most frequent output (ties: the first) is the word.

    Examples
    --------
    >>> from fastdx import Tem
    >>> from fastdx.evaluation import frequency_attack
    >>> frequency_attack(Tem(epsilon=100.0, seed=1), ["coffee", "tea"], 5).tolist()
    [True, True]
    """
    outputs = _outputs(mechanism, words, times)
    guesses = [Counter(out).most_common(1)[0][0] if out else None for out in outputs]
    return np.array([g == w for g, w in zip(guesses, words, strict=True)], dtype=np.bool_)


def likelihood_attack(
    mechanism: Mechanism, words: Sequence[str], times: int, inputs: LikelyInputs | None = None
) -> NDArray[np.bool_]:
    """Let an attacker who knows the law name words by the likeliest explanation of their outputs.

    Each word is as likely as any other before its outputs are seen. The best words of the
    attacker's shortlist are compared by the exact law, where there is one.

    Parameters
    ----------
    mechanism, words, times
        As for `frequency_attack`.
    inputs : LikelyInputs, optional
        Of this mechanism, where they were made before.

    Returns
    -------
    ndarray of bool, shape (words,)
        Whether the word of the largest Σ ln Pr[output|word] (ties: the smallest id) is the word.

    Examples
    --------
    >>> from fastdx import Embedding, Tem
    >>> from fastdx.evaluation import frequency_attack, likelihood_attack
    >>> e = Embedding(["a", "b", "c", "d"], [[0.0], [1.0], [2.0], [3.0]])
    >>> m = Tem(e, 4.0, cover=2, seed=1)  # no output is likelier than 1/2
    >>> often = [attack(m, list("abcd"), 100).sum() for attack in
    ...          (frequency_attack, likelihood_attack)]
    >>> bool(often[0] <= often[1])
    True
    """
    inputs = LikelyInputs.of(mechanism) if inputs is None else inputs
    place = {word: i for i, word in enumerate(mechanism.space.words)}
    laws: dict[int, NDArray[np.float64]] = {}
    found = []
    for word, out in zip(words, _outputs(mechanism, words, times), strict=True):
        ids = [place[y] for y in out if y in place]
        seen, counts = np.unique(np.array(ids, dtype=np.uint32), return_counts=True)
        if not len(seen):
            found.append(False)
            continue
        best = _shortlist(inputs, seen, counts)
        if mechanism.has_law:
            for w in best:
                if w not in laws:
                    laws[w] = mechanism.probabilities(mechanism.space.words[w])
            with np.errstate(divide="ignore"):
                exact = np.array([counts @ np.log(laws[w][seen]) for w in best])
            best = [best[i] for i in np.lexsort((best, -exact))]
        found.append(best[0] == place.get(word))
    return np.array(found, dtype=np.bool_)


def _shortlist(
    inputs: LikelyInputs, seen: NDArray[np.uint32], counts: NDArray[np.int64]
) -> list[int]:
    """Words by the likelihood of their outputs, as far as it is known, largest first."""
    words, logs = inputs.log_likelihood(seen)
    known = logs > -np.inf
    # A word that is not among an output's candidates explains it worse than they do.
    least = np.where(known, logs, np.inf).min(axis=1) - np.log(2)
    more = np.where(known, (logs - least[:, None]) * counts[:, None], 0.0)
    names, at = np.unique(words, return_inverse=True)
    score = np.bincount(at.ravel(), weights=more.ravel(), minlength=len(names))
    return [int(names[i]) for i in np.lexsort((names, -score))[:SHORTLIST]]
