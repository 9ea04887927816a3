"""Decoded texts that say what is certain: how often that is true, on real texts.

The threshold, written down before anything was run: of what ``text("certain", at_least=.5)`` says,
the expected calibration error is at most .03, for every collection and model.

True is a word that was written, and a category that WordNet has above the written word. The model
of a text's own kind counted other texts of the same collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from experiments.data import Source, builtin, split
from experiments.measures import Numbers, calibration_error, resampled
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Tem
from fastdx.bags import STOP_WORDS
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.hierarchy import above, nouns

SIZE = 6000
"""Words of the vocabulary: the first of the built-in ones."""
SENTENCES = 150
LONGEST = 40
"""Words of a sentence."""
AT_LEAST = (0.5, 0.8)
WORST = 0.03
LEVELS = (2.66, 4.0)
NOTHING = 1e-9
"""The ε at which a release tells nothing: what is left is the language model."""
TRIALS = 200
"""Collections that are drawn to see which error so few words have by chance alone."""

COLLECTIONS = {"film reviews (IMDB)": "imdb", "requests (Snips)": "snips",
               "questions (TREC)": "trec", "news (Reuters C50)": "news"}  # fmt: skip


def _sentences(source: Source, name: str) -> list[str]:
    """Requests, questions, and the first sentences of longer texts."""
    texts = split(source, name)[1].some(SENTENCES).texts
    if name in ("snips", "trec"):
        return texts
    return [" ".join(text.split(". ")[0].split()[:LONGEST]) for text in texts]


@cache
def _singulars() -> dict[str, str]:
    return {word: of for word, (_, _, of) in nouns().items() if of is not None}


def covers(category: str, word: str) -> bool:
    """Whether a category, in the singular or plural, stands above a word."""
    if word not in nouns():
        return False
    names = {category, _singulars().get(category, category)}
    return bool(names & above(word))


def _said(
    texts: list[str], space: Embedding, prior: NgramPrior, epsilon: float
) -> Iterator[dict[str, Any]]:
    """Of each text: its places; kind, probability and truth of what is said; content words."""
    tem = Tem(space, epsilon, seed=SEED)
    channel, names = Channel.of(tem), space.words
    for text in texts:
        words = [word.lower() for word in tem.tokenize(text)]
        if not words:
            continue
        posterior = channel.decode(tem.privatize_tokens(words), prior)
        found: dict[str, Any] = {"places": len(words)}
        for at_least in AT_LEAST:
            pieces = posterior.text("certain", at_least=at_least).words
            found[str(at_least)] = [
                [piece.kind == "category", piece.probability,
                 covers(piece.text.strip("[]"), word) if piece.kind == "category"
                 else piece.text == word]
                for piece, word in zip(pieces, words, strict=True)
                if piece.kind in ("word", "category")
            ]  # fmt: skip
        found["content"] = [
            [float(p), names[best] == word]
            for best, p, word in zip(posterior.best, posterior.certainty, words, strict=True)
            if best >= 0 and names[best] not in STOP_WORDS
        ]
        yield found


def _measured(source: Source, asked: tuple[str, bool, float], size: int, count: int) -> Any:
    """The statements about sentences of a collection at an ε, by a model of its kind or another."""
    (shown, own, epsilon), space = asked, builtin(size)
    name = COLLECTIONS[shown]
    prior = (NgramPrior.train(space, split(source, name)[0].texts, 2) if own else
             NgramPrior.english(space))  # fmt: skip
    return list(_said(_sentences(source, name)[:count], space, prior, epsilon))


def _floor(p: Numbers) -> float:
    """The mean calibration error if each thing is true with just its probability."""
    rng = np.random.default_rng(SEED)
    return float(np.mean([calibration_error(p, rng.random(len(p)) < p) for _ in range(TRIALS)]))


def _ends(parts: list[Numbers]) -> str:
    """A mean over all parts, and its 95% interval by the bootstrap over texts."""
    sums = np.array([part.sum() for part in parts])
    sizes = np.array([len(part) for part in parts])
    if not sizes.sum():
        return "–"
    low, high = resampled(sums, sizes)
    return f"{sums.sum() / sizes.sum():.2f} ({low:.2f} to {high:.2f})"


def _columns(found: list[dict[str, Any]], key: str) -> tuple[list[Numbers], ...]:
    """Of each text the columns of what was kept under a key."""
    width = 2 if key == "content" else 3
    rows = [np.array(f[key], dtype=float).reshape(-1, width) for f in found]
    return tuple([row[:, i] for row in rows] for i in range(width))


class _Measures:
    """All that is decoded, each a step of the run, shared by the tables."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.size, self.count = run.of(SIZE, 300), run.of(SENTENCES, 10)
        self.levels = run.of(LEVELS, LEVELS[1:])

    def of(self, name: str, own: bool, epsilon: float) -> list[dict[str, Any]]:
        make = partial(_measured, self.run.data, (name, own, epsilon), self.size, self.count)
        return self.run.step(make, name, own, epsilon, self.size, self.count)

    def each(self) -> Iterator[tuple[str, str, float, Any, Any]]:
        for name in COLLECTIONS:
            for own in (False, True):
                alone = self.of(name, own, NOTHING)
                for epsilon in self.levels:
                    model = "of its kind" if own else "`english()`"
                    yield name, model, epsilon, self.of(name, own, epsilon), alone


def certain(run: Run) -> Table:
    """The probability of statements, and how often they are true."""
    m = _Measures(run)
    table = Table(
        'Decoded by text("certain"): what is said, and how much of it is true',
        ["texts", "bigrams", "ε", "at least", "said of 100 words", "of these categories",
         "expected true", "true", "calibration error", "by chance alone",
         "language model alone, no release: said, true"],
    )  # fmt: skip
    failed, judged = [], 0
    for name, model, epsilon, found, alone in m.each():
        places = sum(f["places"] for f in found)
        for at_least in AT_LEAST:
            category, p, true = _columns(found, str(at_least))
            said = sum(map(len, p))
            _, _, alone_true = _columns(alone, str(at_least))
            beside = f"{100 * sum(map(len, alone_true)) / places:.0f}, {_ends(alone_true)}"
            if not said:
                table.add(name, model, f"{epsilon:g}", f"{at_least:g}", "0", "–", "–", "–", "–",
                          "–", beside)  # fmt: skip
                continue
            gap = calibration_error(np.concatenate(p), np.concatenate(true))
            table.add(name, model, f"{epsilon:g}", f"{at_least:g}", f"{100 * said / places:.0f}",
                      f"{np.concatenate(category).mean():.2f}", f"{np.concatenate(p).mean():.2f}",
                      _ends(true), f"{gap:.3f}", f"{_floor(np.concatenate(p)):.3f}",
                      beside)  # fmt: skip
            if at_least == AT_LEAST[0]:
                judged += 1
                if gap > WORST:
                    failed.append(f"{name}, {model}, ε = {epsilon:g}")
    held = (
        "holds in every row"
        if not failed
        else (
            f"holds in {judged - len(failed)} of {judged} rows, and fails for {'; '.join(failed)}"
        )
    )
    table.notes += [
        f"Tem on {m.size:,} words; {m.count} sentences of each collection. *True*: the word that "
        "was written, or a category above it in WordNet; its 95% interval by the bootstrap over "
        "sentences. A category's probability counts each word in the share of its sense as a "
        "noun, so it is cautious. *By chance alone*: the error that so few things have if each is "
        "true with just its probability. *Of its kind*: bigrams of other texts of the collection.",
        f"Threshold, written down before: at {AT_LEAST[0]:g} the expected calibration error, in "
        f"ten bins, is at most {WORST}. It {held}.",
    ]  # fmt: skip
    return table


def content(run: Run) -> Table:
    """Content words that are named, and how many of them are right."""
    m = _Measures(run)
    table = Table(
        "The likeliest words: content words among them, expected to be right and right",
        ["texts", "bigrams", "ε", "expected right", "right", "calibration error",
         "by chance alone", "language model alone, no release"],
    )  # fmt: skip
    for name, model, epsilon, found, alone in m.each():
        p, true = _columns(found, "content")
        _, nothing = _columns(alone, "content")
        if not sum(map(len, p)):
            table.add(name, model, f"{epsilon:g}", "–", "–", "–", "–", _ends(nothing))
            continue
        gap = calibration_error(np.concatenate(p), np.concatenate(true))
        table.add(name, model, f"{epsilon:g}", f"{np.concatenate(p).mean():.2f}", _ends(true),
                  f"{gap:.3f}", f"{_floor(np.concatenate(p)):.3f}", _ends(nothing))  # fmt: skip
    return table


TABLES: dict[str, Experiment] = {"certain": certain, "content": content}
