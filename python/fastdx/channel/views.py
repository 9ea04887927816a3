"""A decoded text as people read it: what is likely, or what is certain; marked as reconstructed."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastdx.channel.hierarchy import Hierarchy

__all__ = ["Piece", "View", "certain", "page"]

_Numbers = NDArray[np.float64]

OPEN = "…"
"""Stands for what is not certain."""
SHOWN = 5
"""Words of a place that its hover text names."""


@dataclass(frozen=True)
class Piece:
    """What stands at a place."""

    text: str
    kind: str
    """'word', 'category', 'open', or 'shown' where the release shows the word as written."""
    probability: float
    """That it is true; 1 for what is shown, 0 for what is open."""
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest words of the place."""


@dataclass(frozen=True)
class View:
    """A text that was reconstructed. Printed, it says so first; `text` is without the mark."""

    text: str
    expected_right: float
    """The share of what it says in the place of replaced words that is expected to be right; NaN
    where it says nothing."""
    pieces: tuple[Piece, ...] = ()
    """A piece a word of the release; none for samples."""
    gaps: tuple[str, ...] = field(default=(), repr=False)
    """What stands before the pieces, and behind the last."""

    @cached_property
    def mark(self) -> str:
        """What it is, in a line."""
        if np.isnan(self.expected_right):
            return "[reconstructed; says nothing in the place of replaced words]"
        return (f"[reconstructed; {self.expected_right:.0%} of what it says in the place of "
                "replaced words is expected to be right, the rest is invented]")  # fmt: skip

    def __str__(self) -> str:
        """Return the mark and the text."""
        return f"{self.mark}\n{self.text}"

    def to_html(self) -> str:
        """Return the text as a paragraph of HTML: a place's likeliest words show on hover."""
        if not self.pieces:
            return f'<p class="mark">{html.escape(self.mark)}</p>\n<p>{html.escape(self.text)}</p>'
        parts = []
        for gap, piece in zip(self.gaps, self.pieces, strict=False):
            likely = ", ".join(f"{word} {p:.0%}" for word, p in piece.top)
            said = f"{piece.probability:.0%}" if piece.kind in ("word", "category") else piece.kind
            title = html.escape(f"{said}: {likely}" if likely else said, quote=True)
            parts.append(
                f'{html.escape(gap)}<span class="{piece.kind}" '
                f'style="opacity:{0.35 + 0.65 * piece.probability:.2f}" title="{title}">'
                f"{html.escape(piece.text)}</span>"
            )
        parts.append(html.escape(self.gaps[-1]))
        mark = f'<p class="mark">{html.escape(self.mark)}</p>'
        return f"{mark}\n<p>{''.join(parts)}</p>"


def joined(pieces: Sequence[Piece], gaps: Sequence[str]) -> str:
    """Put pieces and what stands between them together; neighbouring open places become one."""
    parts: list[str] = []
    before: Piece | None = None
    for gap, piece in zip(gaps, pieces, strict=False):
        within = before is not None and before.kind == piece.kind == "open"
        if not (within and not set(gap) & set(".!?\n")):
            parts += [gap, piece.text]
        before = piece
    return "".join([*parts, gaps[-1]])


def certain(
    marginal: _Numbers,
    words: Sequence[str],
    *,
    hierarchy: Hierarchy,
    prior: _Numbers,
    at_least: float,
) -> Piece:
    """Return the most specific thing that is probable enough at a place."""
    top = likely_words(marginal, words)
    if top[0][1] >= at_least:
        return Piece(top[0][0], "word", top[0][1], top)
    found = hierarchy.most_specific(marginal, prior, at_least)
    if found is None:
        return Piece(OPEN, "open", 0.0, top)
    return Piece(f"[{found.name}]", "category", found.probability, top)


def likely_words(marginal: _Numbers, words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Return the likeliest words of a place."""
    most = min(SHOWN, len(words))
    ids = np.argpartition(-marginal, most - 1)[:most]
    ids = ids[np.argsort(-marginal[ids], kind="stable")]
    return tuple((words[i], float(marginal[i])) for i in ids)


def right(pieces: Iterable[Piece]) -> float:
    """Return the mean probability of what is said; NaN where nothing is."""
    said = [p.probability for p in pieces if p.kind in ("word", "category")]
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
