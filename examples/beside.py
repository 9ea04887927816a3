"""The same sentences by Tem as published and by the recommended policy, and what an attacker says.

    python examples/beside.py [--plain 2.8] [--guesses]

The attacker sees one output by itself. He knows the mechanism and the words' frequencies (by rank),
and names the likeliest of all words by one guess. The built-in vocabulary; outputs are drawn at
random, so they differ from run to run.
"""

from __future__ import annotations

import argparse
import re

import numpy as np

from fastdx import Embedding, Tem
from fastdx._core import likeliest_inputs
from fastdx.calibration import reidentification

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
)
DRAWS = 3


def by_rank(e: Embedding) -> np.ndarray:
    """How often words are written: the vocabulary is in order of it (`prior="rank"`)."""
    weights = 1 / (np.arange(len(e)) + 3.7)
    return weights / weights.sum()


def in_place(sentence: str, words: list[str]) -> str:
    """The sentence with other words."""
    rest = iter(words)
    return re.sub(r"\w+", lambda _: next(rest), sentence)


def guesses(mechanisms: dict[str, Tem], sentence: str) -> None:
    """Print the sentence, an output of each mechanism and what the attacker takes it for."""
    lines = [f"| written | {sentence} |"]
    for name, tem in mechanisms.items():
        e = tem.embedding
        written = e.ids(tem.tokenize(sentence))
        out = tem.privatize_ids(written)
        # For every output the word that the attacker names.
        best = likeliest_inputs(tem, by_rank(e), 1, None)[0][:, 0]
        shown = [f"**{e.words[g]}**" if g == w else e.words[g]
                 for g, w in zip(best[out], written, strict=True)]  # fmt: skip
        lines.append(f"| {name} | {in_place(sentence, [e.words[y] for y in out])} |")
        lines.append(f"| *the attacker says* | {in_place(sentence, shown)} |")
    print("| | |\n|---|---|", *lines, "\nBold: right this time. " + attack(mechanisms), sep="\n")


def attack(mechanisms: dict[str, Tem]) -> str:
    """Who the attacker is, and how often he is right."""
    right = [f"{reidentification(tem, 'rank').success[1]:.1%} behind {name}"
             for name, tem in mechanisms.items()]  # fmt: skip
    return (
        "The attacker sees one replacement by itself, knows the mechanism, and knows that words "
        "are written by 1/(rank + 2.7). He names one of the 20,000 words, by one guess. Of all "
        f"words written so, stop words included, he is right for {' and '.join(right)}; for "
        f"{by_rank(Embedding.default())[0]:.1%} he would be by always naming the commonest word."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", type=float, default=2.8, help="ε of Tem without a cover")
    parser.add_argument("--guesses", action="store_true")
    args = parser.parse_args()
    plain, cover = Tem(epsilon=args.plain, exclude="offensive"), Tem.recommended()
    names = f"Tem as published, ε = {plain.nominal:g}", "`Tem.recommended()`"
    mechanisms = dict(zip(names, (plain, cover), strict=True))
    if args.guesses:
        guesses(mechanisms, SENTENCES[1])
        return
    print(attack(mechanisms) + "\n")
    print("| written | " + " | ".join(names) + " |\n|---|---|---|")
    for sentence in SENTENCES:
        for i in range(DRAWS):
            written = sentence if i == 0 else ""
            print(f"| {written} | {plain.privatize(sentence)} | {cover.privatize(sentence)} |")


if __name__ == "__main__":
    main()
