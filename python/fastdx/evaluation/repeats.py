"""What counting the outputs of one word recovers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism

__all__ = ["frequency_attack"]


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
    if times < 1:
        raise ParameterError(f"times must be at least 1, got {times}")
    texts = mechanism.privatize([" ".join([word] * times) for word in words])
    guesses = [Counter(text.split()).most_common(1)[0][0] if text else None for text in texts]
    return np.array([g == w for g, w in zip(guesses, words, strict=True)], dtype=np.bool_)
