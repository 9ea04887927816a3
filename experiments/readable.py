"""Text that people can read: a neural base measure beside words' frequencies and bigrams.

Sentences of film reviews (IMDB, test) and requests to an assistant (Snips), all of known words, on
the built-in words. The reader of a release knows the mechanism, the public model and what was
released before each word, and has bigrams of other texts of the same kind: his posterior is an
exact sum. Perplexity is that of trigrams of such texts, which no base has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.data import Labelled, Source, builtin
from experiments.keeps import classifier
from experiments.measures import Numbers, resampled
from experiments.sentences import plain, sentences
from experiments.smc import LookAhead
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Tem
from fastdx.bags import STOP_WORDS
from fastdx.channel import NeuralPrior, NgramPrior
from fastdx.lab.evaluation import MeanVectors

KINDS = {"film": "sentences of film reviews", "snips": "requests to an assistant"}
BASES = {"frequency": "frequencies", "english": "bigrams of English", "neural": "SmolLM2-135M"}
EPSILONS = (2.6, 4.0, 6.0)
CHUNK, CHUNKS = 100, 2
"""Texts of one step, and steps: a run that was stopped goes on behind the last one."""
SHOWN = 5
"""Public texts of the same kind that the neural model reads first."""
EXAMPLES = 10
"""Of each kind: the first ones."""
SHORTEST, LONGEST = 5, 20
BLOCK = 1000


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
        texts = source.imdb("test").texts
        if source.made_up:
            # They have no sentences.
            texts = [f"{' '.join(text.split()[:10])}." for text in texts]
        found = [" ".join(space.words[w] for w in s.words) for s in sentences(texts, space)]
        public = [plain(text) for text in source.imdb("train").texts]
        return Kind(Labelled(found, [""] * len(found)), Labelled(public, []))
    every = source.snips("train")
    fit = [
        i
        for i, text in enumerate(every.texts)
        if SHORTEST <= len(text.split()) <= LONGEST and known.issuperset(text.lower().split())
    ]
    chosen = np.random.default_rng(SEED).permutation(fit)[: min(1000, len(fit) // 2)].tolist()
    taken = {every.texts[i].lower() for i in chosen}
    others = [i for i, text in enumerate(every.texts) if text.lower() not in taken]
    lower = Labelled([text.lower() for text in every.texts], every.labels)
    return Kind(lower.at(chosen), lower.at(others))


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
        public = [" ".join(space.words[w] for w in s.words) for s in sentences(public, space)]
    shown = "\n".join(f"- {text}" for text in public[:SHOWN])
    return Timed(NeuralPrior.llama(space, prompt=f"{KINDS[name]}:\n{shown}\n-"))


class Reader:
    """Exact posteriors under bigrams, for laws that differ from place to place."""

    def __init__(self, prior: NgramPrior) -> None:
        from scipy.sparse import csr_array

        self.first = prior.next()
        rows = LookAhead.of(prior)
        self.base, self.shares = rows.base, rows.shares
        count = len(self.base)
        self.rest = csr_array((rows.rest, (rows.rows, rows.columns)), shape=(count, count))
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
        given = np.ones((longest, len(self.base), count))
        for i, rows in enumerate(likelihoods):
            given[: len(rows), :, i] = rows
        before, behind = np.empty_like(given), np.ones_like(given)
        reached = np.repeat(self.first[:, None], count, axis=1)
        for place in range(longest):
            before[place] = reached * given[place]
            before[place] /= before[place].sum(axis=0)
            reached = np.outer(self.base, self.shares @ before[place])
            reached += self.back @ before[place]
        for place in range(longest - 1, 0, -1):
            said = given[place] * behind[place]
            found = np.outer(self.shares, self.base @ said) + self.rest @ said
            # Differences of large numbers may end below 0.
            behind[place - 1] = np.maximum(found / found.max(axis=0), 1e-300)
        found = before * behind
        found /= found.sum(axis=1, keepdims=True)
        return [found[: len(rows), :, i].copy() for i, rows in enumerate(likelihoods)]


@cache
def _reader(source: Source, name: str, space: Embedding) -> Reader:
    return Reader(NgramPrior.train(space, kind_of(source, name, space).public.texts, 2))


def likelihoods(tem: Tem, releases: Sequence[Sequence[str]]) -> list[Numbers]:
    """Return Pr[y_i | w, y_1 … y_{i-1}] of every place and word: shape (n, V) for each release.

    The law of one word gives the public weights behind a history, and these the law of all words.
    """
    space = tem.embedding
    vectors = space.vectors
    squares = (vectors**2).sum(axis=1)
    gamma = np.inf if tem.gamma is None else tem.gamma

    def factors(ids: Any) -> Any:
        apart = vectors[ids] @ (-2 * vectors.T)
        apart += squares[ids, None] + squares
        apart[np.arange(len(ids)), ids] = 0.0
        np.sqrt(np.maximum(apart, 0, out=apart), out=apart)
        np.minimum(apart, np.float32(gamma), out=apart)
        return np.exp(np.multiply(apart, np.float32(-tem.nominal / 2), out=apart), out=apart)

    of_first = factors(np.array([0]))[0]
    laws: dict[tuple[str, ...], Numbers] = {}
    places = [tuple(words[:i]) if tem._has_history else () for words in releases
              for i in range(len(words))]  # fmt: skip
    for place in places:
        if place not in laws:
            law = tem.probabilities(space.words[0], *([list(place)] if tem._has_history else []))
            weights = law / of_first
            laws[place] = (weights / weights.sum()).astype(np.float32)
    order = {place: j for j, place in enumerate(laws)}
    weights = np.stack(list(laws.values()), axis=1)
    column = [order[place] for place in places]
    shown = space.ids([word for words in releases for word in words]).astype(int)
    found = np.empty((len(places), len(space)))
    for start in range(0, len(space), BLOCK):
        ids = np.arange(start, min(start + BLOCK, len(space)))
        near = factors(ids)
        totals = near @ weights
        found[:, ids] = (weights[shown, column] * near[:, shown] / totals[:, column]).T
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
    for text, posterior in zip(written, _reader(source, name, space).posteriors(given),
                               strict=True):  # fmt: skip
        truth = space.ids(text).astype(int)
        best = np.where(content, posterior, -1.0).argmax(axis=1)
        found["content"].append(int(content[truth].sum()))
        found["named"].append(int(((best == truth) & content[truth]).sum()))
    return found


def similarity(vectors: MeanVectors, texts: list[str], others: list[str]) -> float:
    """The mean cosine of texts' mean vectors, less that of texts and others' releases."""

    def rows(of: list[str]) -> Numbers:
        made = np.asarray(vectors(of), dtype=np.float64)
        unit: Numbers = made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
        return unit

    one, other = rows(texts), rows(others)
    return float((one * other).sum(axis=1).mean() - (one * np.roll(other, 1, axis=0)).sum(axis=1)
                 .mean())  # fmt: skip


def kept_use(kind: Kind, texts: list[str], space: Embedding) -> tuple[float, float]:
    """Learned from these texts: accuracy on plain ones, and on these in five parts."""
    labels = np.array(kind.private.labels[: len(texts)])
    tested = kind.public.some(1000)
    part, hits = np.arange(len(texts)) % 5, 0
    for fold in range(5):
        learned, asked = (np.flatnonzero(x).tolist() for x in (part != fold, part == fold))
        judge = classifier(Labelled([texts[i] for i in learned], labels[learned].tolist()), space)
        hits += int((judge.predict([texts[i] for i in asked]) == labels[asked]).sum())
    judge = classifier(Labelled(texts, labels.tolist()), space)
    return float(judge.score(tested.texts, tested.labels)), hits / len(texts)


class _Measures:
    """All releases, each chunk a step of the run, shared by the tables."""

    def __init__(self, run: Run) -> None:
        self.run, self.words = run, run.of(len(Embedding.default()), 500)
        self.space = builtin(self.words)
        self.chunks, self.epsilons = run.of(CHUNKS, 1), run.of(EPSILONS, EPSILONS[1:2])

    def of(self, name: str, base: str, epsilon: float) -> dict[str, Any]:
        total: dict[str, Any] = {}
        for chunk in range(self.chunks):
            asked = name, base, epsilon, chunk, self.words
            done = self.run.step(partial(released, self.run.data, asked), *asked)
            for key, value in done.items():
                total[key] = total[key] + value if chunk else value
        return total

    def kind(self, name: str) -> Kind:
        return kind_of(self.run.data, name, self.space)

    def each(self) -> Iterator[tuple[str, str, float, dict[str, Any]]]:
        for name in KINDS:
            for epsilon in self.epsilons:
                for base in BASES:
                    yield name, base, epsilon, self.of(name, base, epsilon)


def beside(run: Run) -> Table:
    """A table of what each base gives away and keeps."""
    m = _Measures(run)
    vectors = MeanVectors(run.data.large_glove(m.words))
    table = Table(
        "A neural base measure beside others at equal ε",
        ["texts", "ε", "base", "content words named", "private → plain", "private → private",
         "perplexity", "similarity less chance"],
    )  # fmt: skip
    judges = {name: NgramPrior.train(m.space, m.kind(name).public.texts, 3) for name in KINDS}
    seconds = words = 0.0
    before = ""
    for name, base, epsilon, found in m.each():
        kind, texts = m.kind(name), found["texts"]
        original = kind.private.texts[: len(texts)]

        def row(of: list[str], name: str = name, kind: Kind = kind,
                original: list[str] = original) -> list[str]:  # fmt: skip
            use = kept_use(kind, of, m.space) if kind.public.labels else ()
            alike = similarity(vectors, original, of)
            shown = [f"{x:.2f}" for x in use] or ["–", "–"]
            return [*shown, f"{judges[name].perplexity(of):,.0f}", f"{alike:.3f}"]

        if name != before:
            table.add(f"{len(texts)} {KINDS[name]}", "–", "plain text", "–", *row(original))
        before = name
        named, content = (np.array(found[key], dtype=float) for key in ("named", "content"))
        low, high = resampled(named, content)
        table.add("", f"{epsilon:g}", BASES[base],
                  f"{named.sum() / content.sum():.3f} ({low:.3f} to {high:.3f})",
                  *row(texts))  # fmt: skip
        if base == "neural":
            seconds, words = seconds + found["seconds"], words + found["words"]
    model = "Trigrams take the place of the neural model."
    if not run.data.made_up:
        model = f"The neural model took {1000 * seconds / words:.0f} ms a word, beside other work."
    table.notes.append(
        "One draw; the first texts whose words are all built in, without offensive words in "
        "outputs. *Content words named*: by the exact posterior of bigrams of other texts of the "
        "same kind, with 95% intervals by the bootstrap over texts. *A → B*: learned from A, used "
        "on B; private → private in five parts. *Perplexity*: by trigrams of those other texts. "
        "*Similarity*: cosine of the mean vectors of GloVe 840B, less that with another text's "
        f"release. {model}"
    )
    return table


def examples(run: Run) -> Table:
    """The first texts, and what is released of them."""
    m = _Measures(run)
    table = Table("The first ten texts of each kind", ["written", *(f"ε = {x:g}" for x in
                  m.epsilons)])  # fmt: skip
    for name in KINDS:
        made = [m.of(name, "neural", epsilon)["texts"] for epsilon in m.epsilons]
        for row in list(zip(m.kind(name).private.texts, *made, strict=False))[:EXAMPLES]:
            table.add(*row)
    return table


TABLES: dict[str, Experiment] = {"beside": beside, "examples": examples}
