"""Compute exactly how well releases that read the original again distinguish two texts.

    python examples/not_post_processing.py

This writes the table of docs/research/not-post-processing.md.

Every release here begins with ε·d-private draws, and then reads the original again as published
code does. The vocabularies have three or four words, so all releases of a text can be enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import inf, log
from typing import NamedTuple

import numpy as np

from fastdx import Embedding, Tem

Text = tuple[str, ...]
Law = dict[Text, float]
"""The probabilities of all releases of one text."""


class Finding(NamedTuple):
    """Two texts that a release distinguishes better than its claim allows."""

    release: str
    texts: tuple[Text, Text]
    claimed: str
    allowed: float
    """The largest log-ratio of the two texts under the claim."""
    laws: tuple[Law, Law]
    blind: tuple[Law, Law]
    """A correct release of this kind, which does not read the original again."""


def line(**places: float) -> Embedding:
    """Return words at places in one dimension."""
    return Embedding(list(places), np.array(list(places.values()))[:, None])


def word_law(space: Embedding, word: str, epsilon: float) -> dict[str, float]:
    """Return the ε·d-private law of all first draws, Pr[y | word] ∝ exp(-(ε/2)·d(word, y))."""
    law = Tem(space, epsilon, gamma=inf).probabilities(word)
    return dict(zip(space.words, law.tolist(), strict=True))


def drawn(space: Embedding, text: Text, epsilons: Iterable[float]) -> Law:
    """Draw every word of a text by itself, each at its own ε."""
    laws = [word_law(space, w, e).items() for w, e in zip(text, epsilons, strict=True)]
    return {tuple(y for y, _ in found): float(np.prod([p for _, p in found]))
            for found in product(*laws)}  # fmt: skip


def decoded(law: Law, decode: Callable[[Text], Text]) -> Law:
    """Apply `decode` to each release; this is post-processing if it reads only the release."""
    found: Law = {}
    for y, p in law.items():
        found[decode(y)] = found.get(decode(y), 0.0) + p
    return found


def loss(first: Law, second: Law) -> tuple[float, Text]:
    """Return the largest log-ratio of two laws, and the release that attains it."""

    def ratio(y: Text) -> float:
        p, q = first.get(y, 0.0), second.get(y, 0.0)
        return abs(log(p / q)) if p and q else inf

    worst = max(sorted({*first, *second}), key=ratio)
    return ratio(worst), worst


def distance(space: Embedding, first: Text, second: Text) -> float:
    """Return the distance of two texts of equal length, the sum over their places."""
    return sum(space.distance(a, b) for a, b in zip(first, second, strict=True))


FEELINGS = line(awful=0, poor=1, fair=1.1, great=2)
GOOD = ("fair", "great")


def with_the_feeling_of(read: str, text: Text, epsilon: float, heeded: float = 0.9) -> Law:
    """Draw a word; a decoder that gets a sentiment moves the word to it, 9 times in 10.

    `read` says where the sentiment comes from: the "original" or the "release".
    """
    law: Law = {}
    for (y,), p in drawn(FEELINGS, text, [epsilon]).items():
        told = (text[0] if read == "original" else y) in GOOD
        moved = min((w for w in FEELINGS.words if (w in GOOD) == told),
                    key=lambda w: FEELINGS.distance(y, w))  # fmt: skip
        law[(moved,)] = law.get((moved,), 0.0) + heeded * p
        law[(y,)] = law.get((y,), 0.0) + (1 - heeded) * p
    return law


WARMTH = line(ice=-1, cool=0, mild=0.1, hot=1.05)


def in_words(length: int, text: Text, epsilon: float) -> Law:
    """Draw one word for the mean of a text; a decoder writes it as often as the text has words."""
    mean = float(np.mean([WARMTH.vectors[WARMTH.ids([w])[0], 0] for w in text]))
    weights = np.exp(-epsilon / 2 * np.abs(WARMTH.vectors[:, 0] - mean))
    return {(y,) * length: float(p)
            for y, p in zip(WARMTH.words, weights / weights.sum(), strict=True)}  # fmt: skip


def nearest_of(draws: int, to: str, word: str, epsilon: float) -> Law:
    """Draw several times, and release the draw that is nearest to the word `to`."""
    law = drawn(WARMTH, (word,) * draws, [epsilon] * draws)
    return decoded(law, lambda ys: (min(ys, key=lambda y: WARMTH.distance(to, y)),))


def sent_if_near(to: str, word: str, epsilon: float) -> Law:
    """Draw once; send the output only if it is within 1 of the word `to`, else send nothing."""
    law = drawn(WARMTH, (word,), [epsilon])
    return decoded(law, lambda y: y if WARMTH.distance(to, *y) <= 1 else ())


def drawn_again(word: str, epsilon: float) -> Law:
    """Draw until the output is another word than the original."""
    law = word_law(WARMTH, word, epsilon)
    del law[word]
    return {(y,): p / sum(law.values()) for y, p in law.items()}


CARE = line(pill=0, drug=0.1, home=3, work=5)
SCORES = {"pill": 1.0, "drug": 4.0, "home": 1.0, "work": 1.0}
"""How much each word reveals, by a public list."""


def with_shares_of(total: float, text: Text) -> Law:
    """Divide ε among the words of a text, by how much each reveals relative to the others."""
    scores = [SCORES[w] for w in text]
    return drawn(CARE, text, [total * s / sum(scores) for s in scores])


def by_counts_of(counted: Text, text: Text, epsilon: float) -> Law:
    """Draw each word of a text; release its likeliest input, by counts of other texts."""

    def behind(y: str, word: str) -> float:
        return counted.count(word) * word_law(CARE, word, epsilon)[y]

    def named(ys: Text) -> Text:
        return tuple(max(CARE.words, key=lambda w: behind(y, w)) for y in ys)

    return decoded(drawn(CARE, text, [epsilon] * len(text)), named)


def kept_if_unknown(text: Text, epsilon: float) -> Law:
    """Draw a replacement for a known word; release an unknown word unchanged."""
    return drawn(CARE, text, [epsilon]) if text[0] in CARE.words else {text: 1.0}


def drawn_if_unknown(text: Text, epsilon: float) -> Law:
    """Draw a replacement for a known word; for an unknown word, draw uniformly."""
    uniform: Law = {(y,): 1 / len(CARE) for y in CARE.words}
    return drawn(CARE, text, [epsilon]) if text[0] in CARE.words else uniform


def findings() -> list[Finding]:
    """Return one pair of texts for each kind of release, and for one that reads them once."""
    near = WARMTH.distance("cool", "mild")
    cool, mild = ("cool",), ("mild",)
    pill, drug = ("pill", "home"), ("drug", "home")
    Row = tuple[str, tuple[Text, Text], str, float, Callable[[Text], Law], Callable[[Text], Law]]
    rows: list[Row] = [
        ("the decoder is told the original's sentiment, and heeds it 9 times in 10",
         (("poor",), ("fair",)), "ε·d, ε = 1", FEELINGS.distance("poor", "fair"),
         lambda t: with_the_feeling_of("original", t, 1),
         lambda t: with_the_feeling_of("release", t, 1)),
        ("the decoder writes as many words as the original has",
         (cool, cool * 2), "ε·d between the means of any two texts, ε = 1", 0.0,
         lambda t: in_words(len(t), t, 1), lambda t: in_words(2, t, 1)),
        ("of two draws the one that is nearer to the original",
         (cool, mild), "ε·d for each of two draws, ε = 1", 2 * near,
         lambda t: nearest_of(2, t[0], t[0], 1), lambda t: nearest_of(2, "cool", t[0], 1)),
        ("sent only if it is near the original",
         (cool, mild), "ε·d, ε = 1", near,
         lambda t: sent_if_near(t[0], t[0], 1), lambda t: sent_if_near("cool", t[0], 1)),
        ("drawn again until it is not the original",
         (cool, mild), "ε·d, ε = 1", near,
         lambda t: drawn_again(t[0], 1),
         lambda t: decoded(drawn(WARMTH, t, [1]), lambda y: mild if y == cool else y)),
        ("ε is shared out by looking at the text",
         (pill, drug), "ε·d, ε = 4 in all", 4 * distance(CARE, pill, drug),
         lambda t: with_shares_of(4, t), lambda t: drawn(CARE, t, [2, 2])),
        ("a prior that is counted in the text itself",
         (pill, drug), "ε·d, ε = 1", distance(CARE, pill, drug),
         lambda t: by_counts_of(t, t, 1), lambda t: by_counts_of(("pill", "home", "work"), t, 1)),
        ("the original, where the mechanism has nothing else",
         (("zebra",), ("home",)), "1 for any two words, known or not", 1.0,
         lambda t: kept_if_unknown(t, 0.2), lambda t: drawn_if_unknown(t, 0.2)),
    ]  # fmt: skip
    return [
        Finding(release, (one, other), claimed, allowed, (read(one), read(other)),
                (blind(one), blind(other)))
        for release, (one, other), claimed, allowed, read, blind in rows
    ]  # fmt: skip


def shown(value: float) -> str:
    """Return a log-ratio with three digits."""
    return "∞" if value == inf else f"{value:.3g}"


def main() -> None:
    """Print the table."""
    print("| release | two texts | claimed | log-ratio allowed | log-ratio, true | by the release |"
          " without the original |", "|---|---|---|---|---|---|---|", sep="\n")  # fmt: skip
    for f in findings():
        true, worst = loss(*f.laws)
        texts = " / ".join(" ".join(t) for t in f.texts)
        print(f"| {f.release} | {texts} | {f.claimed} | {shown(f.allowed)} | {shown(true)} | "
              f"{' '.join(worst) or 'nothing'} | {shown(loss(*f.blind)[0])} |")  # fmt: skip


if __name__ == "__main__":
    main()
