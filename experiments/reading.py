"""Decoded texts that say what is certain: how often that is true, on real texts.

The threshold, written down before anything was run: of what ``text("certain", at_least=.5)`` says,
the expected calibration error is at most .03, for every collection and model.

True is a word that was written, and a category that WordNet has above the written word. The model
of a text's own kind counted other texts of the same collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from experiments.data import Source, builtin, split
from experiments.measures import Numbers, calibration_error, resampled
from experiments.tables import SEED, Experiment, Run, Table
from fastdx import Embedding, Tem
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
    """Of each text: its places; kind, probability and truth of what is said."""
    tem = Tem(space, epsilon, seed=SEED)
    channel = Channel.of(tem)
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
    rows = [np.array(f[key], dtype=float).reshape(-1, 3) for f in found]
    return tuple([row[:, i] for row in rows] for i in range(3))


def certain(run: Run) -> Table:
    """The probability of statements, and how often they are true."""
    size, count = run.of(SIZE, 300), run.of(SENTENCES, 10)
    table = Table(
        'Decoded by text("certain"): what is said, and how much of it is true',
        ["texts", "bigrams", "ε", "at least", "said of 100 words", "of these categories",
         "expected true", "true", "calibration error", "by chance alone",
         "language model alone, no release: said, true"],
    )  # fmt: skip

    def measured(name: str, own: bool, epsilon: float) -> Any:
        make = partial(_measured, run.data, (name, own, epsilon), size, count)
        return run.step(make, name, own, epsilon, size, count)

    failed, judged = [], 0
    for name, own, epsilon in product(COLLECTIONS, (False, True), run.of(LEVELS, LEVELS[1:])):
        alone, found = measured(name, own, NOTHING), measured(name, own, epsilon)
        row = [name, "of its kind" if own else "`english()`", f"{epsilon:g}"]
        places = sum(f["places"] for f in found)
        for at_least in AT_LEAST:
            _, _, true = _columns(alone, str(at_least))
            beside = f"{100 * sum(map(len, true)) / places:.0f}, {_ends(true)}"
            category, p, true = _columns(found, str(at_least))
            if not (said := sum(map(len, p))):
                table.add(*row, f"{at_least:g}", "0", *["–"] * 5, beside)
                continue
            expected = np.concatenate(p)
            gap = calibration_error(expected, np.concatenate(true))
            table.add(*row, f"{at_least:g}", f"{100 * said / places:.0f}",
                      f"{np.concatenate(category).mean():.2f}", f"{expected.mean():.2f}",
                      _ends(true), f"{gap:.3f}", f"{_floor(expected):.3f}", beside)  # fmt: skip
            if at_least == AT_LEAST[0]:
                judged += 1
                failed += [", ".join([*row[:2], f"ε = {epsilon:g}"])] * (gap > WORST)
    held = "holds in every row"
    if failed:
        held = (f"holds in {judged - len(failed)} of {judged} rows, and fails for "
                f"{'; '.join(failed)}")  # fmt: skip
    table.notes += [
        f"Tem on {size:,} words; {count} sentences of each collection. *True*: the word that "
        "was written, or a category above it in WordNet; its 95% interval by the bootstrap over "
        "sentences. A category's probability counts each word in the share of its sense as a "
        "noun, so it is cautious. *By chance alone*: the error that so few things have if each is "
        "true with just its probability. *Of its kind*: bigrams of other texts of the collection.",
        f"Threshold, written down before: at {AT_LEAST[0]:g} the expected calibration error, in "
        f"ten bins, is at most {WORST}. It {held}.",
    ]  # fmt: skip
    return table


TABLES: dict[str, Experiment] = {"certain": certain}
