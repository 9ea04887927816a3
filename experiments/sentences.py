"""Sentences of film reviews whose words are all known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from experiments.data import Source
from experiments.tables import SEED
from fastdx import Embedding

SENTENCE = re.compile(r"[A-Za-z' ]+[.!?]")


class Sentence(NamedTuple):
    """The ids of its words, and the mark at its end."""

    review: int
    words: list[int]
    mark: str


def plain(text: str) -> str:
    """A review without its HTML."""
    return text.replace("<br />", " ")


def sentences(texts: Sequence[str], e: Embedding, seed: int = SEED) -> Iterator[Sentence]:
    """One sentence of every review that has any of 6 to 20 known words without marks inside."""
    rng = np.random.default_rng(seed)
    ids = {word: i for i, word in enumerate(e.words)}
    for review in rng.permutation(len(texts)).tolist():
        found = []
        for part in re.split(r"(?<=[.!?])\s+", plain(texts[review])):
            words = [ids.get(w, -1) for w in part[:-1].lower().split()]
            if SENTENCE.fullmatch(part) and 6 <= len(words) <= 20 and min(words) >= 0:
                found.append(Sentence(review, words, part[-1]))
        if found:
            yield found[int(rng.integers(len(found)))]


def unseen(source: Source, e: Embedding) -> list[Sentence]:
    """Those of the reviews that no model has learned from."""
    texts = source.imdb("test").texts
    if source.made_up:  # they have no sentences
        texts = [f"{' '.join(text.split()[:10])}." for text in texts]
    return list(sentences(texts, e))


def words_of(e: Embedding, sentence: Sentence) -> str:
    return " ".join(e.words[w] for w in sentence.words)
