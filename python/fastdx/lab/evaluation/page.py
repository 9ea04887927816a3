"""The page of an evaluation, with tables and pictures but no part of the texts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from fastdx._shared.rounded import up

COLORS = 6
WIDE, HIGH, LEFT, UP, DOWN = 480, 320, 40, 34, 44
"""The size of the picture of the trade-off, and the room for its axes."""


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _color(number: int) -> str:
    return f"var(--c{number % COLORS})"


def _scale(interval: dict[str, float], color: str, chance: float) -> str:
    """Draw an interval and chance on a scale from 0 to 1."""
    low, high = interval["low"], interval["high"]
    return (
        f'<div class="scale"><i class="chance" style="left:{_percent(chance)}"></i>'
        f'<i class="range" style="left:{_percent(low)};width:{_percent(high - low)};'
        f'background:{color}"></i><i class="dot" style="left:{_percent(interval["mean"])};'
        f'background:{color}"></i></div>'
    )


def _figure(interval: dict[str, float]) -> str:
    low, high = interval["low"], interval["high"]
    bounds = "" if low == high else f' <span class="soft">[{low:.3f}, {high:.3f}]</span>'
    return f"{interval['mean']:.3f}{bounds}"


def _row(who: str, interval: dict[str, float], color: str, chance: float) -> str:
    return (f'<div class="row"><span class="who">{escape(who)}</span>'
            f"{_scale(interval, color, chance)}"
            f'<span class="figure">{_figure(interval)}</span></div>')  # fmt: skip


def _verdict(measure: dict[str, Any]) -> str:
    low, high, chance = measure["private"]["low"], measure["private"]["high"], measure["chance"]
    if low > chance:
        return "above chance"
    return "below chance" if high < chance else "not told from chance"


def _measure(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Draw one measure for every policy, with plain text and chance."""
    first = rows[0]
    drawn = "".join(
        _row(names[at] if len(names) > 1 else "private text", m["private"], _color(at), m["chance"])
        for m in rows
        for at in [names.index(m["policy"])]
    )
    if first["plain"] is not None:
        drawn += _row("plain text", first["plain"], "var(--plain)", first["chance"])
    verdict = f" Private text: {_verdict(first)}." if len(names) == 1 else ""
    return (
        f'<section class="measure"><h3>{escape(first["name"])}</h3>'
        f'<p class="soft">{escape(first["meaning"])} Chance {first["chance"]:.3f}: '
        f"{escape(first['chance_is'])}.{verdict}</p>{drawn}</section>"
    )


def _section(data: dict[str, Any], kind: str) -> str:
    names = [p["name"] for p in data["policies"]]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for m in data["measures"]:
        if m["kind"] == kind:
            by_name.setdefault(m["name"], []).append(m)
    drawn = "".join(_measure(rows, names) for rows in by_name.values())
    return drawn or '<p class="soft">Not measured.</p>'


def _policy(
    policy: dict[str, Any], number: int, measures: Sequence[dict[str, Any]], *, alone: bool
) -> str:
    attacks = [m for m in measures if m["policy"] == policy["name"] and m["kind"] == "attack"]
    above = sum(m["private"]["low"] > m["chance"] for m in attacks)
    void = ('<p class="bad">The mechanism has a seed: its output is reproducible, hence NOT '
            "protected.</p>" if policy["seeded"] else "")  # fmt: skip
    return (
        f'<div class="policy" style="border-color:{_color(number)}">'
        f"<h3>{escape(policy['name'])}</h3>{void}<p>{escape(policy['mechanism'])}, "
        f"ε = {up(policy['epsilon'], 4)} per unit of distance. Of {len(attacks)} attacks, {above} "
        f"find something: their whole interval lies above chance.</p>"
        f"<p>{_bits(policy)}</p>"
        f"<details{' open' if alone else ''}><summary>What is proved</summary>"
        f"<p>{escape(policy['guarantee'])}</p></details></div>"
    )


def _bits(policy: dict[str, Any]) -> str:
    """Return the sentence about the bits that a release tells."""
    if policy["bits"] is None:
        return "How many bits a release tells is not known: its law cannot be computed."
    return (
        f"A release tells {_figure(policy['bits'])} of the {policy['entropy']:.2f} bits of a word "
        "(by how often words are written in these texts). Of a text it tells at most so much for "
        "each of its words, whoever reads it."
    )


def _tradeoff(data: dict[str, Any]) -> str:
    """Draw the accuracy of the learning task over the success of the strongest sentence attack."""
    points = []
    tasks = [m for m in data["measures"] if m["kind"] == "task"]
    for number, policy in enumerate(data["policies"]):
        own = [m for m in data["measures"] if m["policy"] == policy["name"]]
        found = [m["private"] for m in own if m["name"].startswith("content word")]
        learned = [m["private"] for m in own if m["kind"] == "task"]
        if found and learned:
            points.append((number, max(found, key=lambda i: i["mean"]), learned[0]))
    if not points:
        return ""

    def x(share: float) -> float:
        return LEFT + share * (WIDE - LEFT - 12)

    def y(share: float) -> float:
        return UP + (1 - share) * (HIGH - DOWN - UP)

    plain, chance = tasks[0]["plain"]["mean"], tasks[0]["chance"]
    marks = [f'<path d="M{x(0)},{y(1)}V{y(0)}H{x(1)}" fill="none" stroke="var(--plain)"/>']
    for share in (0.0, 0.5, 1.0):
        marks.append(f'<text x="{x(share):.1f}" y="{HIGH - DOWN + 18}" text-anchor="middle">'
                     f"{share:g}</text>")  # fmt: skip
        marks.append(f'<text x="{LEFT - 8}" y="{y(share) + 4:.1f}" text-anchor="end">'
                     f"{share:g}</text>")  # fmt: skip
    for share, color, name in ((chance, "var(--bad)", "chance"), (plain, "var(--plain)", "plain")):
        marks.append(f'<path d="M{x(0)},{y(share):.1f}H{x(1)}" stroke="{color}" '
                     'stroke-dasharray="5 4"/>')  # fmt: skip
        marks.append(f'<text x="{x(1)}" y="{y(share) - 5:.1f}" text-anchor="end">{name}</text>')
    for number, found, learned in points:
        color = _color(number)
        marks.append(
            f'<path d="M{x(found["low"]):.1f},{y(learned["mean"]):.1f}H{x(found["high"]):.1f}'
            f'M{x(found["mean"]):.1f},{y(learned["low"]):.1f}V{y(learned["high"]):.1f}" '
            f'stroke="{color}" stroke-width="3"/><circle cx="{x(found["mean"]):.1f}" '
            f'cy="{y(learned["mean"]):.1f}" r="6" fill="{color}"/>'
        )
    marks.append(f'<text x="{x(1)}" y="{HIGH - 6}" text-anchor="end">'
                 "content words named</text>")  # fmt: skip
    marks.append('<text x="0" y="14">labels right</text>')
    return (
        '<h2>What privacy costs</h2><p class="soft">Up and to the left is better: labels '
        "learned from private text and used on private text, over content words that the strongest "
        "of the attacks on sentences names. Bars are 95% intervals.</p>"
        f'<div class="plot"><svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="Labels right '
        f'over content words named">{"".join(marks)}</svg></div>'
    )


def render(data: dict[str, Any]) -> str:
    """Return the HTML page of the data from `Evaluation.to_dict`."""
    policies = data["policies"]
    names = [p["name"] for p in policies]
    method = (f"{data['trials']} trials. Each splits the texts in four: two parts are known to "
              "attackers and to learn from, two are attacked and tested on. Private text is drawn "
              "afresh in every trial. All measures, on plain text and under every policy, share "
              "the splits, and nothing is tuned on the parts that are tested on. Intervals are "
              "Student's over the trials at 95%, widened because the trials share texts (Nadeau "
              "and Bengio 2003); those of repeated words, which are drawn from the vocabulary, are "
              "Clopper and Pearson's. A number without an interval is exact.")  # fmt: skip
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    ran = f" Command: <code>{escape(data['command'])}</code>." if data["command"] else ""
    shown = names if len(names) > 1 else ["private text"]
    keys = [(_color(i), name) for i, name in enumerate(shown)] + [("var(--plain)", "plain text")]
    parts = {
        "title": escape(", ".join(names) if len(names) < 4 else f"{len(names)} policies"),
        "about": escape(f"{data['texts']:,} texts"),
        "policies": "".join(_policy(p, i, data["measures"], alone=len(names) == 1)
                            for i, p in enumerate(policies)),
        "keys": "".join(f'<li><i style="background:{c}"></i>{escape(n)}</li>' for c, n in keys)
                + '<li><i class="bar" style="background:var(--bad)"></i>chance</li>',
        "tradeoff": _tradeoff(data),
        "attacks": _section(data, "attack"),
        "tasks": _section(data, "task"),
        "method": method,
        "notes": "".join(f"<p>{escape(note)}</p>" for note in data["notes"]),
        "provenance": f"{escape(versions)}; seed {data['seed']}; {data['seconds']:.0f} s.{ran}",
    }  # fmt: skip
    text = (files("fastdx.lab.evaluation") / "page.html").read_text("utf-8")
    # One pass over the template, so that braces in an inserted text are not filled in.
    first, *rest = text.split("{{")
    return first + "".join(parts[name] + after for name, after in (r.split("}}", 1) for r in rest))
