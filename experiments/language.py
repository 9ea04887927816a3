"""How many bits a word has left for a reader who knows the words before it, on public texts.

    python -m experiments.language [--sample]

Models of one, two and three words (interpolated Kneser-Ney) are trained on one part of each
collection and read another one: the mean of -log2 Pr[word | words before it], over the words that
the built-in vocabulary has. A better model leaves fewer bits, so each number is an upper bound on
the entropy of a word in its context.
"""

from __future__ import annotations

import argparse
from math import log2

from experiments.data import Sample, Shared, Source
from fastdx import Embedding
from fastdx.channel import NgramPrior

READ = 2_000
"""Reviews that are read; of the other collections all held-out texts."""


def collections(source: Source) -> dict[str, tuple[list[str], list[str]]]:
    """Texts to learn from and texts to read, of each collection."""
    questions, asked = source.sentences("trec")
    if asked is None:
        raise SystemExit("TREC has texts to read of its own")
    return {
        "film reviews (IMDB)": (source.imdb("train").texts, source.imdb("test").some(READ).texts),
        "requests to an assistant (Snips)": (
            source.snips("train").texts,
            source.snips("validate").texts,
        ),
        "questions (TREC)": (questions.texts, asked.texts),
    }


def bits_left(e: Embedding, learned: list[str], read: list[str], order: int) -> float:
    """Return the bits a word by a model that knows `order` - 1 words before it."""
    return log2(NgramPrior.train(e, learned, order).perplexity(read))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", action="store_true", help="made-up texts")
    source = Sample() if parser.parse_args().sample else Shared()
    e = Embedding.default()
    print("| texts | learned from | read | the word alone | after one word | after two words |")
    print("|---|---|---|---|---|---|")
    for name, (learned, read) in collections(source).items():
        found = " | ".join(f"{bits_left(e, learned, read, order):.1f}" for order in (1, 2, 3))
        print(f"| {name} | {len(learned):,} | {len(read):,} | {found} |", flush=True)


if __name__ == "__main__":
    main()
