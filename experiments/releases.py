"""Releases of readable text: by Tem on several bases, and what a reader names of them.

Sentences of film reviews (IMDB, test) and requests to an assistant (Snips), all of known words, on
the built-in words. The reader of a release knows the mechanism, the public model and what was
released before each word, and has bigrams of other texts of the same kind: his posterior is an
exact sum. `experiments.readable` makes tables of them; they stay when these change.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.metrics.pairwise import euclidean_distances

from experiments.data import Labelled, Source, builtin
from experiments.measures import Numbers
from experiments.tables import SEED
from fastdx import Embedding, Tem
from fastdx.bags import STOP_WORDS
from fastdx.channel import NeuralPrior, NgramPrior

KINDS = {"film": "sentences of film reviews", "snips": "requests to an assistant"}
EPSILONS = (2.6, 4.0, 6.0)
CHUNK = 100
"""Texts of one step."""
SHOWN = 5
"""Public texts of the same kind that the neural model reads first."""
SHORTEST, LONGEST = 5, 20
SENTENCE = re.compile(r"[A-Za-z' ]+[.!?]")


class Sentence(NamedTuple):
    """The ids of its words, and the mark at its end."""

    review: int
    words: list[int]
    mark: str


def plain(text: str) -> str:
    """A review without its HTML."""
    return text.replace("<br />", " ")


def sentences(texts: Sequence[str], e: Embedding) -> Iterator[Sentence]:
    """One sentence of every review that has any of 6 to 20 known words without marks inside."""
    rng = np.random.default_rng(SEED)
    ids = {word: i for i, word in enumerate(e.words)}
    for review in rng.permutation(len(texts)).tolist():
        found = []
        for part in re.split(r"(?<=[.!?])\s+", plain(texts[review])):
            words = [ids.get(w, -1) for w in part[:-1].lower().split()]
            if SENTENCE.fullmatch(part) and 6 <= len(words) <= 20 and min(words) >= 0:
                found.append(Sentence(review, words, part[-1]))
        if found:
            yield found[int(rng.integers(len(found)))]


def words_of(e: Embedding, sentence: Sentence) -> str:
    return " ".join(e.words[w] for w in sentence.words)


class Kind(NamedTuple):
    """Texts of one kind."""

    private: Labelled
    public: Labelled
    """Others: for the reader's bigrams, for trigrams, for the prompt, and to test on."""


@cache
def kind_of(source: Source, name: str, space: Embedding) -> Kind:
    """Texts to release, in an order drawn by chance, and public ones. Reviews have no labels."""
    known = set(space.words)
    if name == "film":
        texts = source.texts("imdb", "test").texts
        if source.made_up:  # they have no sentences
            texts = [f"{' '.join(text.split()[:10])}." for text in texts]
        found = [words_of(space, s) for s in sentences(texts, space)]
        public = [plain(text) for text in source.texts("imdb", "train").texts]
        return Kind(Labelled(found, [""] * len(found)), Labelled(public, []))
    every = source.texts("snips", "train")
    fit = [
        i
        for i, text in enumerate(every.texts)
        if SHORTEST <= len(text.split()) <= LONGEST and known.issuperset(text.lower().split())
    ]
    chosen = np.random.default_rng(SEED).permutation(fit)[: min(1000, len(fit) // 2)].tolist()
    taken = {every.texts[i].lower() for i in chosen}
    others = [i for i, text in enumerate(every.texts) if text.lower() not in taken]
    return Kind(every.lower().at(chosen), every.lower().at(others))


class Timed:
    """A model that is asked once for each prefix, and how long that takes."""

    def __init__(self, model: NeuralPrior) -> None:
        self.model, self.seconds = model, 0.0
        self.known: dict[tuple[str | None, ...], Any] = {}

    def log_next(self, prefix: tuple[str | None, ...]) -> Any:
        if prefix not in self.known:
            start = time.perf_counter()
            self.known[prefix] = self.model.log_next(prefix)
            self.seconds += time.perf_counter() - start
        return self.known[prefix]


@cache
def neural(source: Source, name: str, space: Embedding) -> Any:
    """The neural model behind some public texts; trigrams where texts are made up."""
    public = kind_of(source, name, space).public.texts
    if source.made_up:
        return NgramPrior.train(space, public, 3)
    if name == "film":
        public = [words_of(space, s) for s in islice(sentences(public, space), SHOWN)]
    shown = "\n".join(f"- {text}" for text in public[:SHOWN])
    return Timed(NeuralPrior.llama(space, prompt=f"{KINDS[name]}:\n{shown}\n-"))


class Reader:
    """Exact posteriors under bigrams, for laws that differ from place to place.

    Rows Pr[· | u] are λ(u)·b and corrections where a row differs from that, which are few for
    interpolated n-grams: a step costs one pass over the pairs that were seen.
    """

    def __init__(self, prior: NgramPrior) -> None:
        names = prior.space.words
        self.first = prior.next()
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
        self.back = self.rest.T.tocsr()

    def posteriors(self, likelihoods: Sequence[Numbers]) -> list[Numbers]:
        """Return Pr[w_i = w | release] of each text, given Pr[y_i | w, what was released before].

        Parameters
        ----------
        likelihoods : sequence of array of float, shape (n, V)
            One for each text; rows up to a factor.
        """
        count, longest = len(likelihoods), max(map(len, likelihoods))
        # Behind the end of a text everything is as likely.
        given = np.ones((longest, len(self.first), count))
        for i, rows in enumerate(likelihoods):
            given[: len(rows), :, i] = rows
        before, behind = np.empty_like(given), np.ones_like(given)
        reached = np.repeat(self.first[:, None], count, axis=1)
        for place in range(longest):
            before[place] = reached * given[place]
            before[place] /= before[place].sum(axis=0)
            reached = np.outer(self.base, self.shares @ before[place])
            reached += self.back @ before[place]
        for place in range(longest - 2, -1, -1):
            after = given[place + 1] * behind[place + 1]
            found = np.outer(self.shares, self.base @ after) + self.rest @ after
            # Differences of large numbers may end below 0; weights must not.
            behind[place] = np.maximum(found / found.max(axis=0), 1e-12)
        found = before * behind
        found /= found.sum(axis=1, keepdims=True)
        return [found[: len(rows), :, i].copy() for i, rows in enumerate(likelihoods)]


@cache
def reader(source: Source, name: str, space: Embedding) -> Reader:
    return Reader(NgramPrior.train(space, kind_of(source, name, space).public.texts, 2))


@lru_cache(maxsize=len(EPSILONS))
def factors(space: Embedding, epsilon: float, gamma: float | None) -> Any:
    """Tem's factor of the distance of all pairs: float32, shape (V, V)."""
    made = euclidean_distances(space.vectors)
    np.minimum(made, np.float32(gamma or np.inf), out=made)
    return np.exp(np.multiply(made, np.float32(-epsilon / 2), out=made), out=made)


def likelihoods(tem: Tem, releases: Sequence[Sequence[str]]) -> list[Numbers]:
    """Return Pr[y_i | w, y_1 … y_{i-1}] of every place and word: shape (n, V) for each release.

    The law of one word gives the public weights behind a history, and these the law of all words.
    """
    space = tem.embedding
    near = factors(space, tem.nominal, tem.gamma)
    laws: dict[tuple[str, ...], Numbers] = {}
    places = [tuple(words[:i]) if tem._has_history else () for words in releases
              for i in range(len(words))]  # fmt: skip
    for place in places:
        if place not in laws:
            law = tem.probabilities(space.words[0], *([list(place)] if tem._has_history else []))
            weights = law / near[0]
            laws[place] = (weights / weights.sum()).astype(np.float32)
    order = {place: j for j, place in enumerate(laws)}
    weights = np.stack(list(laws.values()), axis=1)
    column = [order[place] for place in places]
    shown = space.ids([word for words in releases for word in words]).astype(int)
    totals = (near @ weights).T
    found = weights[shown, column][:, None] * near[shown].astype(float) / totals[column]
    return np.split(found, np.cumsum([len(words) for words in releases])[:-1])


def released(source: Source, asked: tuple[str, str, float, int, int]) -> dict[str, Any]:
    """Release some texts; count their content words, and those that the reader names."""
    name, base, epsilon, chunk, words = asked
    space = builtin(words)
    texts = kind_of(source, name, space).private.texts[chunk * CHUNK : (chunk + 1) * CHUNK]
    language = neural(source, name, space) if base == "neural" else base
    if base == "english" and source.made_up:
        language = NgramPrior.train(space, kind_of(source, name, space).public.texts, 2)
    spent = getattr(language, "seconds", 0.0)
    tem = Tem(space, epsilon, language=language, exclude="offensive")
    written = [text.split() for text in texts]
    outputs = [tem.privatize_tokens(text) for text in written]
    content = np.array([word not in STOP_WORDS for word in space.words])
    given = likelihoods(tem, outputs)
    spent = getattr(language, "seconds", 0.0) - spent
    if isinstance(language, Timed):
        language.known.clear()
    found = {"texts": [" ".join(out) for out in outputs], "content": [], "named": [],
             "seconds": spent, "words": sum(map(len, written))}  # fmt: skip
    for text, posterior in zip(written, reader(source, name, space).posteriors(given),
                               strict=True):  # fmt: skip
        truth = space.ids(text).astype(int)
        best = np.where(content, posterior, -1.0).argmax(axis=1)
        found["content"].append(int(content[truth].sum()))
        found["named"].append(int(((best == truth) & content[truth]).sum()))
    return found
