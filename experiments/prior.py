"""How well the posterior knows what it knows, and how many bits models of language leave a word.

No model is trained on the texts that it is asked about; models of a collection count its training
texts. Calibration is judged on the first sentence of each text, and on sentences that are drawn
from the model itself.

The table `language` has the bits that a word has left for a reader who knows the words before it:
the mean of -log2 Pr[word | words before it] by interpolated Kneser-Ney, over words that the
built-in vocabulary has. A better model leaves fewer bits, so each is an upper bound on the entropy
of a word in its context.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log2

import numpy as np

from experiments.data import Source, builtin, split
from experiments.measures import calibration_error
from experiments.tables import Experiment, Run, Table
from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior

TEXTS, SENTENCES = 2000, 100
DRAWN, LENGTH = 300, 12
"""Sentences that are drawn from a model, and their words."""
UNKNOWN = "zqxqz"
"""A word that no space has."""
SEED = 1
NAMES = {"imdb": "IMDB", "snips": "Snips", "trec": "TREC", "news": "Reuters"}
READ = {"imdb": "film reviews (IMDB)", "snips": "requests to an assistant (Snips)",
        "trec": "questions (TREC)"}  # fmt: skip


def _space(run: Run) -> Embedding:
    return builtin(run.of(20_000, 1000))


def texts(source: Source) -> dict[str, list[str]]:
    """Texts of four kinds that no model has seen."""
    return {shown: split(source, name)[1].some(TEXTS // 4 if name == "news" else TEXTS).texts
            for name, shown in NAMES.items()}  # fmt: skip


def calibrated(
    tem: Tem, channel: Channel, prior: NgramPrior, written: Sequence[str]
) -> tuple[int, float, float, float]:
    """Return how many words there are, the shares named and expected to be, and the error.

    Words that the space lacks are in it: the posterior may name them as unknown.
    """
    certainty, right = [], []
    known = {word: i for i, word in enumerate(tem.space.words)}
    for text in written:
        words = [w.lower() for w in tem.tokenize(text)]
        if not words:
            continue
        posterior = channel.decode(tem.privatize_tokens(words), prior)
        certainty.append(posterior.certainty)
        right.append(posterior.best == [known.get(w, -1) for w in words])
    sure, hit = np.concatenate(certainty), np.concatenate(right)
    return len(hit), float(hit.mean()), float(sure.mean()), calibration_error(sure, hit)


def sentences_of(prior: NgramPrior, count: int) -> list[str]:
    """Return sentences that are drawn from the model itself, unknown words among them."""
    rng = np.random.default_rng(SEED)
    words, made = prior.space.words, []
    for _ in range(count):
        written: list[str] = []
        for _ in range(LENGTH):
            if rng.random() < prior.unknown_next(written):
                written.append(UNKNOWN)
                continue
            shares = prior.next(written)
            written.append(words[rng.choice(len(words), p=shares / shares.sum())])
        made.append(" ".join(written))
    return made


def calibration(run: Run) -> Table:
    """How often words are named, and how often the posterior says they are."""
    space, english = _space(run), NgramPrior.english(_space(run))
    rows: list[tuple[str, str, NgramPrior, list[str]]] = [
        ("drawn from the model", "`english()`", english, sentences_of(english, run.of(DRAWN, 10)))
    ]
    for (kind, unseen), name in zip(texts(run.data).items(), NAMES, strict=True):
        written = [t.split(". ")[0] for t in unseen[: run.of(SENTENCES, 5)]]
        own = NgramPrior.train(space, split(run.data, name)[0].texts, 2)
        rows += [(kind, "`english()`", english, written),
                 (kind, f"bigrams of {kind} (train)", own, written)]  # fmt: skip
    mechanism = Tem(space, 2.66, seed=SEED)
    channel = Channel.of(mechanism)
    table = Table(
        "Calibration of the posterior, Tem, ε = 2.66",
        ["texts", "model", "words", "named", "expected", "calibration error"],
    )
    for kind, model, prior, written in rows:
        make = partial(calibrated, mechanism, channel, prior, written)
        words, *shares = run.step(make, kind, model)
        table.add(kind, model, f"{words:,}", *(f"{share:.3f}" for share in shares))
    return table


def bits_left(e: Embedding, learned: list[str], read: list[str], order: int) -> float:
    """Return the bits a word by a model that knows `order` - 1 words before it."""
    return log2(NgramPrior.train(e, learned, order).perplexity(read))


def language(run: Run) -> Table:
    """The bits that a word has left, by how many words before it are known."""
    table = Table("Bits of a word", ["texts", "learned from", "read", "the word alone",
                                     "after one word", "after two words"])  # fmt: skip
    for name, shown in READ.items():
        learned, tested = split(run.data, name)
        read = tested.some(TEXTS) if name == "imdb" else tested
        found = [run.step(partial(bits_left, _space(run), learned.texts, read.texts, order),
                          "bits left", name, order) for order in (1, 2, 3)]  # fmt: skip
        table.add(shown, f"{len(learned.texts):,}", f"{len(read.texts):,}",
                  *(f"{bits:.1f}" for bits in found))  # fmt: skip
    return table


TABLES: dict[str, Experiment] = {
    "calibration": calibration,
    "language": language,
}
