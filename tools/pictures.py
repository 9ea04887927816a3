"""Draws the pictures of the users' pages, for light and for dark pages.

    python -m tools.pictures NAME FOLDER

It writes docs/pictures/NAME-light.svg and NAME-dark.svg, and prints the HTML that shows them.
FOLDER is docs/pictures as the page sees it. Files hold the hash of their numbers.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from experiments.policies import BEFORE
from experiments.recommendation import KEPT, recommended
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tools.figures import ROOT

from fastdx import Tem

FOLDER = ROOT / "docs" / "pictures"
WORD, COMMON, EPSILONS = "coffee", 100, (1, 2, 2.6, 3, 4, 6)
COLORS = {
    "light": {"text": "#404040", "main": "#26a69a", "other": "#ef7f2d", "pale": "#bdbdbd"},
    "dark": {"text": "#d0d0d0", "main": "#4db6ac", "other": "#ffab66", "pale": "#8a8a8a"},
}
INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
SHOWN = (
    "1,000,000 Zipf ids, first call", "1,000,000 Zipf ids, warm", "TEM, a word", "TEM, 200 words",
    "Tem, 200 words", "MADLIB", "MultivariateLaplace", "SanText", "lists of 256",
    "load GloVe text",
)  # fmt: skip
"""How the rows of docs/speed.md begin that are shown."""


class Picture(NamedTuple):
    """The numbers of a picture, its description, and the function that draws it."""

    numbers: dict[str, Any]
    alt: str
    draw: Callable[[Axes, dict[str, str]], object]

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.numbers).encode()).hexdigest()


def use() -> Picture:
    """Use that is kept over content words that are named, for every policy that was measured."""
    kept = json.loads(KEPT.read_text("utf-8"))
    points = {name: [row["named"]["content"], *row["score"]]
              for name, row in kept["spaces"]["builtin"].items()}  # fmt: skip
    marked = {str(recommended(kept["spaces"])): "recommended", str(BEFORE): "before"}

    def draw(axes: Axes, colors: dict[str, str]) -> None:
        families: dict[str, list[list[float]]] = {}
        for name in sorted(points, key=lambda name: name in marked):
            families.setdefault(name.rpartition(", ")[0], []).append(points[name])
        for (family, some), marker in zip(families.items(), "osD^vPX<>", strict=False):
            x, y, *_ = 100 * np.array(sorted(some)).T
            axes.plot(x, y, f"{marker}-", color=colors["pale"], label=family)
        for (name, label), color in zip(marked.items(), ("main", "other"), strict=True):
            x, y, low, high = 100 * np.array(points[name])
            axes.errorbar(x, y, [[y - low], [high - y]], fmt="*", color=colors[color],
                          markersize=16, capsize=4, zorder=3, label=f"{label}: {name}")  # fmt: skip
        axes.set(xlabel="content words that an attacker names (%)", xlim=(0, None), ylim=(0, None),
                 ylabel="use that is kept (%)", title="better: up, to the left")  # fmt: skip

    alt = "; ".join(f"{points[name][1]:.0%} kept, {points[name][0]:.1%} named ({label})"
                    for name, label in marked.items())  # fmt: skip
    return Picture(points, f"Use that policies keep over words that are named. {alt}", draw)


def law() -> Picture:
    """The shares of the word itself, of common words and of all others, at several ε."""
    shares = {}
    for epsilon in EPSILONS:
        tem = Tem(epsilon=epsilon, language="rank", exclude="offensive")
        law = tem.probabilities(WORD)  # in order of frequency
        same, common = law[tem.space.words.index(WORD)], law[:COMMON].sum()
        shares[f"ε = {epsilon}"] = [round(float(x), 3) for x in (same, common, 1 - same - common)]
    parts = (f"“{WORD}” itself", f"one of the {COMMON} commonest words", "any other word")

    def draw(axes: Axes, colors: dict[str, str]) -> None:
        left = np.zeros(len(shares))
        share = np.array([*shares.values()]).T
        for part, color, some in zip(parts, ("other", "main", "pale"), share, strict=True):
            axes.barh([*shares], some, left=left, color=colors[color], label=part)
            for i in np.flatnonzero(some > 0.07):
                axes.annotate(f"{some[i]:.0%}", (left[i] + some[i] / 2, i), ha="center",
                              va="center", color="black")  # fmt: skip
            left += some
        axes.invert_yaxis()
        axes.set(xlim=(0, 1), xticks=[])

    alt = "; ".join(f"{e}: {part[0]:.1%}, {part[1]:.0%}" for e, part in shares.items())
    return Picture(shares, f"How often “{WORD}” stays, and becomes {parts[1]}. {alt}", draw)


def speed() -> Picture:
    """Times as fast as peers, from the tables of docs/speed.md."""
    page = (ROOT / "docs" / "speed.md").read_text("utf-8")
    ratios = {}
    for name in SHOWN:
        row = re.search(rf"^{name}.*? fastdx +\S+ \S+ +(.+?) +\S+ \S+ +([\d.]+)×$", page, re.M)
        assert row is not None, name
        ratios[f"{name}: {row[1].partition(',')[0]}"] = float(f"{float(row[2]):.2g}")
    ratios = dict(sorted(ratios.items(), key=lambda x: x[1]))

    def draw(axes: Axes, colors: dict[str, str]) -> None:
        chosen = [colors["main" if ratio >= 1 else "other"] for ratio in ratios.values()]
        bars = axes.barh([*ratios], [*ratios.values()], color=chosen)
        axes.bar_label(bars, fmt="{:,g}", padding=4)
        axes.set(xscale="log", xlabel="times as fast as the peer", xlim=(0.3, 2e6))

    alt = f"Times as fast as the peer. {'; '.join(f'{k} {v:,g}' for k, v in ratios.items())}"
    return Picture(ratios, alt, draw)


PICTURES = {"use": use, "law": law, "speed": speed}


def main() -> None:
    name, folder = sys.argv[1:]
    picture = PICTURES[name]()
    style = {"svg.fonttype": "none", "svg.hashsalt": "fastdx", "font.size": 12,
             "axes.spines.top": False, "axes.spines.right": False}  # fmt: skip
    for scheme, colors in COLORS.items():
        with mpl.rc_context({**style, **dict.fromkeys(INKED, colors["text"])}):
            figure = Figure(figsize=(6, 4.8), layout="constrained")
            axes = figure.subplots()
            picture.draw(axes, colors)
            if axes.get_legend_handles_labels()[0]:
                figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=10)
            figure.savefig(FOLDER / f"{name}-{scheme}.svg", transparent=True, metadata={
                "Date": None, "Creator": None, "Description": picture.digest()})  # fmt: skip
    print('<picture><source media="(prefers-color-scheme: dark)" '
          f'srcset="{folder}/{name}-dark.svg"><img alt="{html.escape(picture.alt)}" '
          f'src="{folder}/{name}-light.svg"></picture>')  # fmt: skip


if __name__ == "__main__":
    main()
