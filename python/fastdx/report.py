"""One self-contained page on which ε is chosen by eye: ``fastdx calibrate``."""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastdx import calibration
from fastdx._replace import open_output
from fastdx.calibration.measures import statistics_at
from fastdx.exceptions import ParameterError
from fastdx.mechanisms import Mechanism
from fastdx.plots import neighbour_distances

__all__ = ["write"]

BINS = 30
REPLACEMENTS = 6
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def write(
    path: str | PathLike[str],
    mechanism: Mechanism,
    *,
    max_unchanged: float = 0.5,
    min_outputs: int = 300,
    max_reidentified: float | None = None,
    max_posterior: float | None = None,
    prior: ArrayLike | str | None = None,
    words: Iterable[str] | None = None,
    examples: Sequence[str] | None = None,
    draws: int = 1000,
    points: int = 13,
    progress: Callable[[str], object] | None = None,
) -> calibration.Choice:
    """Write the page: choose ε, measure every step of the slider around it, lay it out.

    Parameters
    ----------
    path : str or os.PathLike
        An HTML file, written beside its place and renamed. It needs no network.
    mechanism : Mechanism
        Any; its own ε does not matter.
    max_unchanged, min_outputs, max_reidentified, max_posterior, prior : optional
        The promise, as for `calibration.choose_epsilon`.
    words : iterable of str, optional
        Words to measure, as for `calibration.statistics`; on large vocabularies a sample saves
        time.
    examples : sequence of str, optional
        Words whose replacements are shown; by default a few of the measured ones.
    draws : int, optional
        Draws a word.
    points : int, optional
        How many ε the slider has, at least 3.
    progress : callable, optional
        Called with a line on what is being done.

    Returns
    -------
    calibration.Choice
        The chosen ε, and why.
    """
    if points < 3:
        raise ParameterError(f"points must be at least 3, got {points}")
    tell = progress or (lambda line: None)
    tell("choosing ε")
    names = None if words is None else list(words)
    choice = calibration.choose_epsilon(
        mechanism, max_unchanged=max_unchanged, min_outputs=min_outputs, words=names, draws=draws,
        max_reidentified=max_reidentified, max_posterior=max_posterior, prior=prior,
    )  # fmt: skip
    epsilons = _grid(mechanism, choice.epsilon, points)
    if examples is None:
        measured = names or list(mechanism.space.words)
        spread = np.linspace(0, len(measured) - 1, min(6, len(measured))).astype(int)
        examples = list(dict.fromkeys([*(measured[i] for i in spread), choice.word]))
    mechanism.space.ids(examples)  # names the first unknown one
    tell(f"measuring {len(epsilons)} ε from {epsilons[0]:.4g} to {epsilons[-1]:.4g}")
    steps = []
    tables = statistics_at(mechanism, epsilons, names, draws)
    for epsilon, table in zip(epsilons, tables, strict=True):
        at = mechanism.with_epsilon(epsilon)
        steps.append(
            {
                "epsilon": epsilon,
                "N_w": _histogram(table["N_w"], 1.0),
                "support": _histogram(table["support"], float(len(mechanism.space))),
                "mean_N_w": float(table["N_w"].mean()),
                "worst_N_w": float(table["N_w"].max()),
                "worst_word": str(table["word"][int(np.argmax(table["N_w"]))]),
                "mean_support": float(table["support"].mean()),
                "worst_support": int(table["support"].min()),
                "worst_S_w": float(table["S_w"].min()),
                "mean_S_w": float(table["S_w"].mean()),
                # A pass over all laws: only where the page opens.
                "named": _named(at, prior) if epsilon == choice.epsilon else None,
                "examples": {word: _replacements(at, word, draws) for word in examples},
            }
        )
    tell("distances")
    most = len(mechanism.space) - 1
    ks = [k for k in (1, 5, 20, 100, 500) if k <= most]
    neighbours = neighbour_distances(mechanism, ks) if ks else np.zeros((1, 0))
    data = {
        "mechanism": type(mechanism).__name__,
        "metric": mechanism.space.metric,
        "words": len(mechanism.space),
        "measured": len(names) if names is not None else len(table),
        "draws": draws,
        "exact": mechanism.has_law,
        "chosen": epsilons.index(choice.epsilon),
        "why": str(choice),
        "guarantee": str(choice.mechanism.guarantee),
        "steps": steps,
        "neighbours": [
            {"k": k, "quantiles": np.quantile(neighbours[:, i], QUANTILES).tolist()}
            for i, k in enumerate(ks)
        ],
    }
    with open_output(os.fspath(path)) as out:
        out.write(_page(data).encode())
    return choice


def _grid(mechanism: Mechanism, chosen: float, points: int) -> list[float]:
    """Some ε around the chosen one, which is among them."""
    ratio = 16.0 ** (1 / (points - 1))
    grid = []
    for i in range(points):
        epsilon = float(chosen * ratio ** (i - points // 2))
        if i == points // 2:
            epsilon = chosen
        try:
            mechanism.with_epsilon(epsilon)
        except ParameterError:
            continue  # below the smallest ε that this mechanism has
        grid.append(epsilon)
    return grid


def _named(mechanism: Mechanism, prior: ArrayLike | str | None) -> dict[str, Any] | None:
    """What an attacker finds, where the law says so exactly."""
    if not mechanism.has_law:
        return None
    found = calibration.reidentification(mechanism, prior, (1, 10, 100))
    near = float(calibration.near_losses(mechanism).mean())
    return {
        "guesses": [found.success[g] for g in (1, 10, 100)],
        "surest": found.worst_posterior,
        "word": found.word,
        "output": found.output,
        "near": near if np.isfinite(near) else None,
    }


def _histogram(values: Any, largest: float) -> list[int]:
    return [int(n) for n in np.histogram(values, bins=BINS, range=(0.0, largest))[0]]


def _replacements(mechanism: Mechanism, word: str, draws: int) -> list[tuple[str, float]]:
    words = mechanism.space.words
    if mechanism.has_law:
        law = mechanism.probabilities(word)
        best = np.argsort(-law, kind="stable")[:REPLACEMENTS]
        return [(words[i], float(law[i])) for i in best]
    counts = Counter(mechanism.sample(word, draws).tolist())
    return [(words[i], n / draws) for i, n in counts.most_common(REPLACEMENTS)]


def _page(data: dict[str, Any]) -> str:
    template = (files("fastdx") / "report.html").read_text("utf-8")
    # Inside a script nothing may look like a tag.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    title = html.escape(f"{data['mechanism']} on {data['words']:,} words")
    return template.replace("{{title}}", title).replace("{{data}}", text)
