"""Texts that attacks are tried on, a leak that each must find, and noise in which none may."""

from collections.abc import Sequence

import numpy as np
from experiments import data

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


WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnprst"]
"""A small vocabulary."""
E = Embedding(WORDS, np.random.default_rng(3).normal(size=(len(WORDS), 8)))


def labelled(count: int, kinds: int, seed: int) -> data.Labelled:
    return data.Labelled(*kinds_of_texts(WORDS, 10, count, kinds, seed, 30))


class Planted(data.Sample):
    """Texts of the small vocabulary, in the place of all that the experiments read."""

    def texts(self, name: str, part: str) -> data.Labelled:
        if name in ("mr", "trec"):
            return labelled(300 if part == "train" else 100, 4, len(name) + 5 * (part == "test"))
        form = {"imdb": (600, 2, 0), "snips": (200, 4, 30), "news": (160, 8, 10)}
        count, kinds, seed = form.get(name, (160, 8, 20))
        return labelled(count, kinds, len(part) + seed)

    def glove(self) -> Embedding:
        return E

    def minilm(self, dim: int, words: int = 40_000) -> Embedding:
        return E

    def hierarchy(self, dim: int, epochs: int) -> Embedding:
        return Embedding(WORDS, E.vectors / 100, metric="poincare")
