"""Draw the pictures of docs/research from the exact laws of the built-in vocabulary.

    python examples/pictures.py docs/research

It writes map.svg (the bound on the change by an output), law.svg (the outputs of a word), loss.svg
(the changes by outputs, with the bound), wall.svg (the bits that releases leave unknown) and
disk.svg (a hierarchy in the Poincaré disk). The colours are readable on light and dark pages.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fastdx import Embedding, Tem, poincare
from fastdx.channel import Channel
from fastdx.lab import plots

GREY, TEAL, ORANGE = "#808080", "#1a9e8f", "#d9822b"
WORD, OTHER = "coffee", "tea"
KINDS = {
    "thing": ["animal", "plant", "artefact"],
    "animal": ["mammal", "bird", "fish"],
    "mammal": ["dog", "cat", "horse"],
    "bird": ["owl", "duck"],
    "fish": ["trout", "cod"],
    "plant": ["tree", "flower"],
    "tree": ["oak", "pine"],
    "flower": ["rose", "lily"],
    "artefact": ["vehicle", "tool"],
    "vehicle": ["car", "boat"],
    "tool": ["hammer", "saw"],
}
STYLE = {
    "svg.fonttype": "none",  # the page's letters: small files, and text that can be found
    "svg.hashsalt": "fastdx",  # the same file each time
    "font.family": "sans-serif",
    "font.size": 13,
    "text.color": GREY,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.titlecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def odds(figure: Figure, e: Embedding) -> None:
    """Draw the largest factor between the probabilities of two words, over their distance."""
    axes = figure.subplots()
    epsilon = 1.0
    words = ["drink", "tea", "breakfast", "kitchen", "parliament"]
    distances = np.array([e.distance(WORD, word) for word in words])
    line = np.linspace(0, distances.max() * 1.12, 100)
    axes.plot(line, np.exp(epsilon * line), color=TEAL)
    axes.scatter(distances, np.exp(epsilon * distances), color=ORANGE, zorder=3)
    for word, d in zip(words, distances, strict=True):
        axes.annotate(word, (d, np.exp(epsilon * d)), xytext=(-8, 6), ha="right",
                      textcoords="offset points")  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel(f"distance d from “{WORD}”")
    axes.set_ylabel(f"largest factor e^(ε·d), ε = {epsilon:g}")


def replacements(figure: Figure, e: Embedding) -> None:
    """Draw the likeliest outputs of a word, without and with a base measure, on one scale."""
    recommended = Tem.recommended()
    plain = Tem(e, 2.8)
    shown = {
        f"Tem, ε = {plain.nominal:g}": plain,
        f'recommended: language="rank", ε = {recommended.nominal:g}': recommended,
    }
    for ax, (name, tem) in zip(figure.subplots(2, 1), shown.items(), strict=True):
        law = tem.probabilities(WORD)
        order = np.argsort(-law, kind="stable")[:12]
        names = [*(e.words[i] for i in order), "all others"]
        heights = [*law[order], 1 - law[order].sum()]
        colors = [ORANGE if n == WORD else GREY if n == "all others" else TEAL for n in names]
        ax.barh(names[::-1], heights[::-1], color=colors[::-1])
        ax.set_title(name)
        ax.set_xlim(0, 1)
        for at, height in enumerate(heights[::-1]):
            ax.annotate(f"{height:.2g}", (height, at), xytext=(4, -4), textcoords="offset points")
        ax.set_xlabel(f"probability, “{WORD}” being written")


def losses(figure: Figure, e: Embedding) -> None:
    """Draw the sorted log-ratios of two words over all outputs, and the bound."""
    axes = figure.subplots()
    tem = Tem(e, 3.0)
    ratio = np.log(tem.probabilities(WORD)) - np.log(tem.probabilities(OTHER))
    bound = tem.guarantee.bound(WORD, OTHER)
    assert np.abs(ratio).max() <= bound
    share = (tem.probabilities(WORD) + tem.probabilities(OTHER)) / 2
    axes.hist(ratio, bins=np.linspace(-bound, bound, 41), weights=share, color=TEAL)
    for end in (-bound, bound):
        axes.axvline(end, color=ORANGE)
    axes.annotate("bound", (bound, axes.get_ylim()[1]), xytext=(-6, -12), ha="right",
                  textcoords="offset points", color=ORANGE)  # fmt: skip
    axes.set_xlabel(f"ln (Pr[output | {WORD}] / Pr[output | {OTHER}])")
    axes.set_ylabel("probability of such outputs")


def wall(figure: Figure, e: Embedding) -> None:
    """Draw the least bits of a word that remain unknown, over the bits that a release tells."""
    axes = figure.subplots()
    most = 8.0
    for h, label in ((7.0, (2.9, 4.3)), (3.5, (1.4, 2.3)), (2.5, (0.93, 0.12))):
        axes.plot([0, h, most], [h, 0, 0], color=TEAL)
        axes.annotate(f"h = {h:g}", label, color=TEAL, fontsize=11)
    policies = {
        "Tem, ε = 2.66": Tem(e, 2.66),
        "recommended": Tem.recommended(),
        "cover of 40, ε = 6": Tem(e, 6.0, cover=40, balance=0.05),
    }
    for (name, tem), top in zip(policies.items(), (10.4, 9.4, 8.4), strict=True):
        told = float(Channel.of(tem).bits())
        axes.plot([told, told], [0, top], color=ORANGE, linestyle="--")
        axes.annotate(f"{name}: {told:.2g}", (told, top), xytext=(6, -8), color=ORANGE,
                      textcoords="offset points")  # fmt: skip
    axes.set_xlim(0, most)
    axes.set_ylim(0, 11)
    axes.set_yticks(range(0, 9, 2))
    axes.set_xlabel("I: bits that the release tells of a word")
    axes.set_ylabel("bits of a word left open, at least")


def hierarchy(figure: Figure, _: Embedding) -> None:
    """Draw a small hierarchy in the disk; it is trained on all pairs of a word and a kind of it."""
    parents = {word: kind for kind, words in KINDS.items() for word in words}
    pairs = []
    for word in parents:
        kind: str | None = word
        while kind := parents.get(kind):  # type: ignore[arg-type]
            pairs.append((word, kind))
    trained = poincare.train(pairs, 2, epochs=60, negatives=5, seed=3, threads=1)
    plots.disk(trained, parents.items(), KINDS, axes=figure.subplots()).margins(0.15)


PICTURES = {
    "map": ((5.4, 4.2), odds),
    "law": ((5.4, 8), replacements),
    "loss": ((5.4, 3.8), losses),
    "wall": ((5.4, 4.6), wall),
    "disk": ((5.4, 5.4), hierarchy),
}


def main() -> None:
    (folder,) = map(Path, sys.argv[1:])
    with mpl.rc_context(STYLE):
        for name, (size, draw) in PICTURES.items():
            figure = Figure(figsize=size)
            draw(figure, Embedding.default())
            figure.tight_layout()
            figure.savefig(folder / f"{name}.svg", transparent=True,
                           metadata={"Date": None, "Creator": None})  # fmt: skip


if __name__ == "__main__":
    main()
