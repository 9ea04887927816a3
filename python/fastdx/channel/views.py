"""A decoded text as people read it: what is likely, or what is certain; marked as reconstructed."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastdx.channel.hierarchy import Hierarchy

_Numbers = NDArray[np.float64]

OPEN = "…"
"""Stands for what is not certain."""
SHOWN = 5
"""Words of a place that its hover text names."""


@dataclass(frozen=True)
class DecodedWord:
    """A decoded word, or what stands in its place."""

    text: str
    kind: str
    """'word', 'category', 'open', or 'shown' where the release shows the word as written."""
    probability: float
    """The probability that it is true; 1 if the release shows it, 0 if it is open."""
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest words of the place."""


@dataclass(frozen=True)
class View:
    """A reconstructed text. Printed, it says so first; `text` is without the mark."""

    text: str
    expected_right: float
    """The expected share of right ones among the words that it says in place of replaced ones; NaN
    if it says none."""
    words: tuple[DecodedWord, ...] = ()
    """One for each word of the release; empty for samples."""
    gaps: tuple[str, ...] = field(default=(), repr=False)
    """The text before each word, and after the last one."""

    @cached_property
    def mark(self) -> str:
        """A description in one line."""
        if np.isnan(self.expected_right):
            return "[reconstructed; says nothing in the place of replaced words]"
        return (f"[reconstructed; {self.expected_right:.0%} of what it says in the place of "
                "replaced words is expected to be right, the rest is invented]")  # fmt: skip

    def __str__(self) -> str:
        return f"{self.mark}\n{self.text}"

    def to_html(self) -> str:
        """Return the text as a paragraph of HTML: a place's likeliest words show on hover."""
        if not self.words:
            return f'<p class="mark">{html.escape(self.mark)}</p>\n<p>{html.escape(self.text)}</p>'
        parts = []
        for gap, word in zip(self.gaps, self.words, strict=False):
            likely = ", ".join(f"{name} {p:.0%}" for name, p in word.top)
            said = f"{word.probability:.0%}" if word.kind in ("word", "category") else word.kind
            title = html.escape(f"{said}: {likely}" if likely else said, quote=True)
            parts.append(
                f'{html.escape(gap)}<span class="{word.kind}" '
                f'style="opacity:{0.35 + 0.65 * word.probability:.2f}" title="{title}">'
                f"{html.escape(word.text)}</span>"
            )
        parts.append(html.escape(self.gaps[-1]))
        mark = f'<p class="mark">{html.escape(self.mark)}</p>'
        return f"{mark}\n<p>{''.join(parts)}</p>"


def joined(words: Sequence[DecodedWord], gaps: Sequence[str]) -> str:
    """Join words and the text between them; adjacent open places become one."""
    parts: list[str] = []
    before: DecodedWord | None = None
    for gap, word in zip(gaps, words, strict=False):
        within = before is not None and before.kind == word.kind == "open"
        if not (within and not set(gap) & set(".!?\n")):
            parts += [gap, word.text]
        before = word
    return "".join([*parts, gaps[-1]])


def certain(
    marginal: _Numbers,
    words: Sequence[str],
    *,
    hierarchy: Hierarchy,
    prior: _Numbers,
    at_least: float,
) -> DecodedWord:
    """Return the most specific thing that is probable enough at a place."""
    top = likely_words(marginal, words)
    if top[0][1] >= at_least:
        return DecodedWord(top[0][0], "word", top[0][1], top)
    found = hierarchy.most_specific(marginal, prior, at_least)
    if found is None:
        return DecodedWord(OPEN, "open", 0.0, top)
    return DecodedWord(f"[{found.name}]", "category", found.probability, top)


def likely_words(marginal: _Numbers, words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Return the likeliest words of a place."""
    most = min(SHOWN, len(words))
    ids = np.argpartition(-marginal, most - 1)[:most]
    ids = ids[np.argsort(-marginal[ids], kind="stable")]
    return tuple((words[i], float(marginal[i])) for i in ids)


def right(words: Iterable[DecodedWord]) -> float:
    """Return the mean probability of what is said; NaN where nothing is."""
    said = [p.probability for p in words if p.kind in ("word", "category")]
    return float(np.mean(said)) if said else float("nan")


STYLE = """body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
.mark{color:#8a4b00;font-size:.85rem}.category{color:#00695c}.open{color:#888}
span[title]{cursor:help;border-bottom:1px dotted #bbb}.shown{border:0}
pre{white-space:pre-wrap;font-size:.85rem;background:#8881;padding:1rem}"""


def page(parts: Iterable[str], guarantee: str) -> str:
    """Return a page of views in HTML, with the guarantee; it needs no network."""
    body = "\n<hr>\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">\n<title>Reconstructed text</title>'
        f"\n<style>{STYLE}</style>\n{body}\n<h2>What may be said of it</h2>\n"
        f"<pre>{html.escape(guarantee)}</pre>\n</html>\n"
    )
