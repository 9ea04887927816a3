"""Texts that attacks are tried on, a leak that each must find, and noise in which none may."""

from collections.abc import Sequence

import numpy as np

from fastdx import Embedding, Tem


def leak(e: Embedding) -> Tem:
    """Release every word as it is."""
    return Tem(e, 200.0, gamma=100.0, seed=1)


def uniform(e: Embedding) -> Tem:
    """Release any word, whatever was written."""
    return Tem(e, 1e-9, seed=1)


def kinds_of_texts(
    words: Sequence[str], own: int, count: int, kinds: int, seed: int, length: int
) -> tuple[list[str], list[str]]:
    """Texts of several kinds, each with some words of its own among others; and their kinds."""
    rng = np.random.default_rng(seed)
    texts, kind = [], np.arange(count) % kinds
    for k in kind:
        ours, any_word = own * k + rng.integers(0, own, length), rng.integers(0, len(words), length)
        chosen = np.where(rng.random(length) < 0.4, ours, any_word)
        texts.append(" ".join(words[i] for i in chosen))
    return texts, [f"kind {k}" for k in kind]


def users(count: int, seed: int) -> list[list[np.ndarray]]:
    """Users who write words by chance, each other ones."""
    rng = np.random.default_rng(seed)
    return [[rng.integers(0, 500, 100).astype(np.uint32)] for _ in range(count)]
