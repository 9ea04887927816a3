"""The page of an evaluation, with tables and pictures but no part of the texts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from fastdx._shared.rounded import up

COLORS = 6


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _color(number: int) -> str:
    return f"var(--c{number % COLORS})"


def _figure(interval: dict[str, float]) -> str:
    low, high = interval["low"], interval["high"]
    bounds = "" if low == high else f' <span class="soft">[{low:.3f}, {high:.3f}]</span>'
    return f"{interval['mean']:.3f}{bounds}"


def _row(who: str, interval: dict[str, float], color: str, chance: float) -> str:
    """Draw an interval and chance on a scale from 0 to 1."""
    low, high = interval["low"], interval["high"]
    return (
        f'<div class="row"><span class="who">{escape(who)}</span>'
        f'<div class="scale"><i class="chance" style="left:{_percent(chance)}"></i>'
        f'<i class="range" style="left:{_percent(low)};width:{_percent(high - low)};'
        f'background:{color}"></i><i class="dot" style="left:{_percent(interval["mean"])};'
        f'background:{color}"></i></div><span class="figure">{_figure(interval)}</span></div>'
    )


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
