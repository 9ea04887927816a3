"""The same sentences by Tem and by Tem on a cover, at equal success of the attacker.

    python examples/beside.py [--epsilon 6] [--guesses]

The attacker knows the mechanism and the words' frequencies (by rank) and names the word behind each
output; Tem's ε is the largest at which that succeeds no more often than for the cover. The built-in
vocabulary; outputs are drawn at random, so they differ from run to run.
"""

from __future__ import annotations

import argparse
import re

import numpy as np

from fastdx import Cover, Embedding, Tem
from fastdx._core import likeliest_inputs
from fastdx.calibration import choose_epsilon, reidentification

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


def guesses(mechanisms: dict[str, Tem], named: float, sentence: str) -> None:
    """Print the sentence, an output of each mechanism and what the attacker takes it for."""
    lines, expected = [f"| written | {sentence} |"], []
    for name, tem in mechanisms.items():
        e = tem.embedding
        written = e.ids(tem.tokenize(sentence))
        out = tem.privatize_ids(written)
        # For every output the word that the attacker names, and how often that is right here.
        best = likeliest_inputs(tem, by_rank(e), 1, None)[0][:, 0]
        laws = (tem.probabilities(e.words[w]) for w in written)
        right = [law[best == w].sum() for law, w in zip(laws, written, strict=True)]
        expected.append(f"{sum(right):.1f} behind {name}")
        shown = [f"**{e.words[g]}**" if g == w else e.words[g]
                 for g, w in zip(best[out], written, strict=True)]  # fmt: skip
        lines.append(
            f"| {name}, ε = {tem.epsilon:.2f} | {in_place(sentence, [e.words[y] for y in out])} |"
        )
        lines.append(f"| *the attacker says* | {in_place(sentence, shown)} |")
    print("| | |\n|---|---|", *lines, sep="\n")
    print(
        f"\nThe attacker knows the mechanism and how often each word is written. Of all words that "
        f"are written he names {named:.1%} right, whichever of the two replaced them; of the "
        f"{len(written)} of this sentence, on average, {' and '.join(expected)}. Bold: right this "
        f"time."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=6.0)
    parser.add_argument("--guesses", action="store_true")
    args = parser.parse_args()
    e = Embedding.default()
    cover = Tem(e, args.epsilon, cover=Cover.balanced(e, 40, exclude="offensive"))
    named = reidentification(cover, "rank").success[1]
    choice = choose_epsilon(Tem(e, 3.0, exclude="offensive"), max_unchanged=1.0, min_outputs=1,
                            max_reidentified=named, prior="rank", words=["coffee"])  # fmt: skip
    tem = choice.mechanism
    if args.guesses:
        guesses({"Tem": tem, "Tem on a cover": cover}, named, SENTENCES[1])
        return
    print(f"An attacker names {named:.1%} of the words in both columns: Tem at ε = "
          f"{tem.epsilon:.2f}, on a balanced cover of k = 40 at ε = {cover.epsilon:g}.\n"
          )  # fmt: skip
    print("| written | Tem | Tem on a cover |\n|---|---|---|")
    for sentence in SENTENCES:
        for i in range(DRAWS):
            written = sentence if i == 0 else ""
            print(f"| {written} | {tem.privatize(sentence)} | {cover.privatize(sentence)} |")


if __name__ == "__main__":
    main()
