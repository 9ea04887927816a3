"""Privatise sentences by Tem as published and by the recommended policy, and attack them.

    python examples/beside.py [--plain 2.8] [--guesses] [--texts FILE.jsonl]

The script prints ε and the bits that a release tells about a word. The attacker sees one output by
itself, knows the mechanism and the words' frequencies (by rank), and makes one guess. With texts
(one JSON object per line, field "text") the strongest attacker reads whole sentences. He learns
from every second text which words follow each other, and names the content words of the others. The
vocabulary is the built-in one. Outputs are random, so they differ from run to run.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.lab.attacks import reidentification, sentence_attack

SENTENCES = (
    "cancer treatment in Boston",
    "I would like to book a table for two at the restaurant near the station.",
)
DRAWS = 3
MOST = 1000
"""The most texts to attack."""


def in_place(sentence: str, words: list[str]) -> str:
    """Return the sentence with other words in place of its own."""
    rest = iter(words)
    return re.sub(r"\w+", lambda _: next(rest), sentence)


def guesses(channels: dict[str, Channel], sentence: str) -> None:
    """Print the sentence, an output of each mechanism, and the attacker's guesses."""
    lines = [f"| written | {sentence} |"]
    for name, channel in channels.items():
        e = channel.mechanism.space
        written = e.ids(channel.mechanism.tokenize(sentence))
        out = channel.mechanism.privatize_ids(written)
        # The word that the attacker names, for every output.
        best = [int(channel.posterior(y).argmax()) for y in out]
        shown = [f"**{e.words[g]}**" if g == w else e.words[g]
                 for g, w in zip(best, written, strict=True)]  # fmt: skip
        lines.append(f"| {name} | {in_place(sentence, [e.words[y] for y in out])} |")
        lines.append(f"| *the attacker says* | {in_place(sentence, shown)} |")
    print("| | |\n|---|---|", *lines, "\nBold: right this time. " + attack(channels), sep="\n")


def attack(channels: dict[str, Channel]) -> str:
    """Describe the bits of a release, the attacker, and his success."""
    told = " and ".join(f"{channel.bits()} a word by {name}" for name, channel in channels.items())
    right = [f"{reidentification(channel.mechanism, 'rank').success[1]:.1%} behind {name}"
             for name, channel in channels.items()]  # fmt: skip
    known = 1 / sum(3.7 / (rank + 3.7) for rank in range(len(Embedding.default())))
    return (
        f"A release tells {told}: of a text at most so much for each word, whoever reads it. "
        "An attacker who sees one replacement by itself, knows the mechanism, and knows that words "
        "are written by 1/(rank + 2.7), names one of the 20,000 words, by one guess. Of all "
        f"words written so, stop words included, he is right for {' and '.join(right)}; for "
        f"{known:.1%} he would be by always naming the commonest word. Equal success here is not "
        "equal protection: look at the bits, and at whole sentences."
    )


def sentences(channels: dict[str, Channel], path: Path) -> str:
    """Describe the success of the strongest attacker, who reads whole sentences."""
    texts = [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines() if line]
    model = NgramPrior.train(Embedding.default(), texts[::2])
    found = {
        name: sentence_attack(channel.mechanism, texts[1::2][:MOST], model, channel=channel)
        for name, channel in channels.items()
    }
    said = " and ".join(
        f"{r.sentence.mean:.1%} ({r.sentence.low:.1%} to {r.sentence.high:.1%}) behind {name}"
        for name, r in found.items()
    )
    first = next(iter(found.values()))
    return (
        f"Of {first.words:,} content words in {first.texts:,} texts of {path.name} the strongest "
        f"attacker who knows which words follow each other names {said}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", type=float, default=2.8, help="ε of Tem without a cover")
    parser.add_argument("--guesses", action="store_true")
    parser.add_argument("--texts", type=Path, metavar="FILE.jsonl", help="to attack sentences")
    args = parser.parse_args()
    plain, cover = Tem(epsilon=args.plain, exclude="offensive"), Tem.recommended()
    names = f"Tem as published, ε = {plain.nominal:g}", "`Tem.recommended()`"
    channels = {name: Channel.of(m) for name, m in zip(names, (plain, cover), strict=True)}
    if args.guesses:
        guesses(channels, SENTENCES[1])
    else:
        print(attack(channels))
    if args.texts:
        print("\n" + sentences(channels, args.texts))
    if args.guesses:
        return
    print("\n| written | " + " | ".join(names) + " |\n|---|---|---|")
    for sentence in SENTENCES:
        for i in range(DRAWS):
            written = sentence if i == 0 else ""
            print(f"| {written} | {plain.privatize(sentence)} | {cover.privatize(sentence)} |")


if __name__ == "__main__":
    main()
