"""The page of an evaluation: its tables and pictures, with nothing of the texts."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Any

__all__ = ["render"]

WIDE, HIGH, EDGE = 640, 34, 12


def _x(share: float) -> float:
    return EDGE + min(max(share, 0.0), 1.0) * (WIDE - 2 * EDGE)


def _picture(measure: dict[str, Any]) -> str:
    """Draw one measure between 0 and 1: the interval, the plain text's number, chance."""
    private, plain, middle = measure["private"], measure["plain"], HIGH / 2
    marks = [
        f'<path d="M{_x(0)},{middle}H{_x(1)}" stroke="#d9dee8"/>',
        f'<path d="M{_x(measure["chance"]):.1f},4V{HIGH - 4}" stroke="var(--chance)" '
        'stroke-width="2"/>',
    ]
    if plain is not None:
        marks.append(f'<circle cx="{_x(plain["mean"]):.1f}" cy="{middle}" r="5" '
                     'fill="var(--plain)"/>')  # fmt: skip
    marks.append(f'<path d="M{_x(private["low"]):.1f},{middle}H{_x(private["high"]):.1f}" '
                 'stroke="var(--private)" stroke-width="3"/>')  # fmt: skip
    marks.append(f'<circle cx="{_x(private["mean"]):.1f}" cy="{middle}" r="5" '
                 'fill="var(--private)"/>')  # fmt: skip
    return f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img">{"".join(marks)}</svg>'


def _cell(interval: dict[str, float] | None) -> str:
    if interval is None:
        return "–"
    low, high = interval["low"], interval["high"]
    bounds = "" if low == high else f' <span class="soft">[{low:.3f}, {high:.3f}]</span>'
    return f"{interval['mean']:.3f}{bounds}"


def _table(measures: list[dict[str, Any]]) -> str:
    if not measures:
        return '<p class="soft">Not measured.</p>'
    rows = "".join(
        f"<tr><td>{escape(m['name'])}</td><td>{_cell(m['private'])}</td><td>{_cell(m['plain'])}</td>"
        f'<td>{m["chance"]:.3f} <span class="soft">{escape(m["chance_is"])}</span></td>'
        f'<td style="width:30%">{_picture(m)}</td></tr>'
        for m in measures
    )
    return ("<table><thead><tr><th></th><th>private text</th><th>plain text</th><th>chance</th>"
            f"<th>0 to 1</th></tr></thead><tbody>{rows}</tbody></table>")  # fmt: skip


def render(data: dict[str, Any]) -> str:
    """Return the page of what `Evaluation.to_dict` gives."""
    by_kind = {kind: _table([m for m in data["measures"] if m["kind"] == kind])
               for kind in ("attack", "task")}  # fmt: skip
    method = (f"{data['trials']} trials. Each splits the texts in four: two parts are known to "
              "attackers and to learn from, two are attacked and tested on. Private text is drawn "
              "afresh in every trial, and all measures share the splits. Intervals are Student's "
              "over the trials, widened because the trials share texts (Nadeau and Bengio "
              "2003).")  # fmt: skip
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    ran = f" Command: <code>{escape(data['command'])}</code>." if data["command"] else ""
    parts = {
        "title": escape(f"{data['mechanism']} at ε = {data['epsilon']:.4g}"),
        "about": escape(f"{data['texts']:,} texts"),
        "void": '<p class="void">The mechanism has a seed: its output is reproducible, hence NOT '
                "protected.</p>" if data["seeded"] else "",
        "guarantee": escape(data["guarantee"]),
        "attacks": by_kind["attack"],
        "tasks": by_kind["task"],
        "method": method,
        "notes": "".join(f"<p>{escape(note)}</p>" for note in data["notes"]),
        "provenance": f"{escape(versions)}; seed {data['seed']}; {data['seconds']:.0f} s.{ran}",
    }  # fmt: skip
    text = (files("fastdx.evaluation") / "page.html").read_text("utf-8")
    # One pass, so that braces in a text are no place to fill.
    first, *rest = text.split("{{")
    return first + "".join(parts[name] + after for name, after in (r.split("}}", 1) for r in rest))
