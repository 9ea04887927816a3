"""How well models of English predict real texts, and how well the posterior knows what it knows.

    python -m experiments.prior                # perplexity a known word
    python -m experiments.prior --calibration  # expected calibration error of marginals

Texts: IMDB (test), Snips (validate), TREC (test), Reuters C50 (test); no model is trained on them.
Models of a collection count its training texts. Needs ../shared/data. Calibration is judged on the
first sentence of each text, and on sentences that are drawn from the model itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from experiments.data import Shared
from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior

TEXTS, SENTENCES, BINS = 2000, 100, 10
DRAWN, LENGTH = 300, 12
"""Sentences that are drawn from a model, and their words."""
UNKNOWN = "zqxqz"
"""A word that no space has."""
SEED = 1


def texts(source: Shared) -> dict[str, list[str]]:
    """Return texts of four kinds that no model has seen."""
    trec = source.sentences("trec")[1]
    assert trec is not None
    return {
        "IMDB": source.imdb("test").some(TEXTS).texts,
        "Snips": source.snips("validate").some(TEXTS).texts,
        "TREC": trec.some(TEXTS).texts,
        "Reuters": source.news("test").some(TEXTS // 4).texts,
    }


def perplexity(source: Shared) -> None:
    """Print the perplexity of each known word, given that it is known."""
    space = Embedding.default()
    unseen = texts(source)
    priors = {
        "ranks, 1/(rank + 2.7)": NgramPrior.of_frequencies(space),
        "`NgramPrior.english()`": NgramPrior.english(),
        "bigrams of IMDB (train)": NgramPrior.train(space, source.imdb("train").texts, 2),
        "trigrams of IMDB (train)": NgramPrior.train(space, source.imdb("train").texts, 3),
        "bigrams of Snips (train)": NgramPrior.train(space, source.snips("train").texts, 2),
    }
    print("| model | " + " | ".join(unseen) + " |\n|---|" + "---:|" * len(unseen))
    for name, prior in priors.items():
        found = [f"{prior.perplexity(kind):,.0f}" for kind in unseen.values()]
        print(f"| {name} | " + " | ".join(found) + " |", flush=True)


def error(certainty: np.ndarray, right: np.ndarray) -> float:
    """Return the expected calibration error in bins of equal width."""
    place = np.minimum((certainty * BINS).astype(int), BINS - 1)
    gaps = [(certainty - right)[place == b].sum() for b in range(BINS)]
    return float(np.abs(gaps).sum() / len(right))


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
        ids = np.array([known.get(w, -1) for w in words])
        if not len(ids):
            continue
        released = tem.privatize_tokens(words)
        posterior = channel.decode(released, prior)
        certainty.append(posterior.certainty)
        right.append(posterior.best == ids)
    sure, hit = np.concatenate(certainty), np.concatenate(right)
    return len(hit), float(hit.mean()), float(sure.mean()), error(sure, hit)


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


def calibration(source: Shared) -> None:
    """Print how often words are named, and how often the posterior says they are."""
    space = Embedding.default()
    unseen = texts(source)
    kinds = {name: [t.split(". ")[0] for t in kind][:SENTENCES] for name, kind in unseen.items()}
    trec = source.sentences("trec")[0]
    trained = {
        "IMDB": source.imdb("train").texts,
        "Snips": source.snips("train").texts,
        "TREC": trec.texts,
        "Reuters": source.news("train").texts,
    }
    english = NgramPrior.english()
    models = {kind: NgramPrior.train(space, known, 2) for kind, known in trained.items()}
    drawn = sentences_of(english, DRAWN)
    mechanisms = {
        "Tem, ε = 2.66": Tem(space, 2.66, seed=SEED),
        "cover of 40, ε = 4": Tem(space, 4.0, cover=40, balance=0.05, seed=SEED),
    }
    print("| mechanism | texts | model | words | named | expected | calibration error |")
    print("|---|---|---|---:|---:|---:|---:|")
    for name, mechanism in mechanisms.items():
        channel = Channel.of(mechanism)
        rows = [("drawn from the model", "`english()`", english, drawn)]
        for kind, written in kinds.items():
            rows.append((kind, "`english()`", english, written))
            rows.append((kind, f"bigrams of {kind} (train)", models[kind], written))
        for kind, model, prior, written in rows:
            words, named, expected, gap = calibrated(mechanism, channel, prior, written)
            print(f"| {name} | {kind} | {model} | {words:,} | {named:.3f} | {expected:.3f} | "
                  f"{gap:.3f} |", flush=True)  # fmt: skip


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calibration", action="store_true")
    args = parser.parse_args()
    (calibration if args.calibration else perplexity)(Shared())


if __name__ == "__main__":
    main()
