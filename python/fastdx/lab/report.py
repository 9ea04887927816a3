"""Writes the page of ``fastdx calibrate``, one self-contained file that shows each ε."""

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

from fastdx import calibration
from fastdx._shared.replace import open_output
from fastdx.calibration.measures import spread, statistics_at
from fastdx.channel import Channel
from fastdx.channel.guesses import prior_of
from fastdx.channel.law import Prior
from fastdx.exceptions import ParameterError
from fastdx.lab import attacks, audit
from fastdx.lab.limit import entropy
from fastdx.mechanisms import Mechanism

__all__ = ["write"]

REPLACEMENTS = 6
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
GUESSES = (1, 10, 100)
POINTS = 13
"""The number of ε on the slider, an odd one: the chosen one is in the middle."""
ATTACKED = 3
"""The number of ε at which the attacker's success is computed, by a pass over all laws each."""
LAWS = 1000
"""Laws from which the bits are estimated at all ε but the chosen one."""
SENTENCE = "I would like to book a table for two at the restaurant near the station."
RELEASES = 3
"""The number of releases of the sentence at every ε."""


def write(
    path: str | PathLike[str],
    mechanism: Mechanism,
    *,
    prior: Prior = None,
    words: Iterable[str] | None = None,
    examples: Sequence[str] | None = None,
    sentence: str | None = None,
    draws: int = 1000,
    progress: Callable[[str, float | None], object] | None = None,
    **promise: Any,
) -> calibration.Choice:
    """Choose ε, measure the mechanism at several ε around it, and write the page.

    Parameters
    ----------
    path : str or os.PathLike
        The HTML file. It replaces an existing file when it is complete, and needs no network.
    mechanism : Mechanism
        Any mechanism; the search starts at its ε.
    prior : array_like of float, shape (V,), 'rank', or a model of language, optional
        How often each word is written, as for `calibration.choose_epsilon`.
    words : iterable of str, optional
        Words to measure, as for `calibration.statistics`; for a large vocabulary a sample saves
        time.
    examples : sequence of str, optional
        Words whose replacements the page shows; by default a few of the measured ones.
    sentence : str, optional
        A public sentence whose releases the page shows at every ε; by default an English one, if
        the vocabulary has its words.
    draws : int, optional
        Draws per word.
    progress : callable, optional
        Called with a line about each step, and the share of the work before it, if that is known.
    **promise
        The promise, as for `calibration.choose_epsilon`: ``max_unchanged``, ``min_outputs``,
        ``max_reidentified``, ``max_posterior``, ``max_bits``, ``max_named``, ``texts``, ``model``.

    Returns
    -------
    calibration.Choice
        The chosen ε and the reason.
    """
    tell = progress or (lambda line, share: None)
    names = None if words is None else list(words)
    # The first array of the compiled part loads numpy's interface, and an interruption there is a
    # panic. So it comes before the line that people wait for and interrupt at.
    mechanism.space.ids(names or [])
    tell("choosing ε", None)
    choice = calibration.choose_epsilon(mechanism, words=names, draws=draws, prior=prior, **promise)
    epsilons = _grid(mechanism, choice.epsilon)
    if examples is None:
        measured = names or list(mechanism.space.words)
        some = np.linspace(0, len(measured) - 1, min(6, len(measured))).astype(int)
        examples = list(dict.fromkeys([*(measured[i] for i in some),
                                       *([choice.word] if choice.word else [])]))  # fmt: skip
    mechanism.space.ids(examples)  # raises for an unknown word
    written = _written(mechanism, sentence)
    attacked = {round(i) for i in np.linspace(0, len(epsilons) - 1, ATTACKED)}
    attacked.add(epsilons.index(choice.epsilon))
    tell(f"measuring {len(epsilons)} ε from {epsilons[0]:.4g} to {epsilons[-1]:.4g}", None)
    steps = []
    tables = statistics_at(mechanism, epsilons, names, draws)
    long = attacked if mechanism.has_law else range(len(epsilons))
    for number, epsilon in enumerate(epsilons):
        tell(f"measuring ε = {epsilon:.4g}", sum(i < number for i in long) / len(long))
        at, table = mechanism.with_epsilon(epsilon), next(tables)
        steps.append(
            {
                "epsilon": epsilon,
                "mean_N_w": float(table["N_w"].mean()),
                "most_N_w": np.quantile(table["N_w"], (QUANTILES[0], QUANTILES[-1])).tolist(),
                "worst_N_w": float(table["N_w"].max()),
                "worst_word": str(table["word"][int(np.argmax(table["N_w"]))]),
                "mean_support": float(table["support"].mean()),
                "worst_support": int(table["support"].min()),
                "worst_S_w": float(table["S_w"].min()),
                "mean_S_w": float(table["S_w"].mean()),
                "bits": _bits(at, prior, exact=epsilon == choice.epsilon),
                "named": _named(at, prior) if number in attacked else None,
                "near": _near(at) if epsilon == choice.epsilon else None,
                "examples": {word: _replacements(at, word, draws) for word in examples},
                "released": [at.privatize_tokens(written) for _ in range(RELEASES)],
            }
        )
    most = len(mechanism.space) - 1
    ks = [k for k in (1, 5, 20, 100, 500) if k <= most]
    near = [np.sort(mechanism.space.distances(mechanism.space.words[i]))[ks]
            for i in spread(mechanism)]  # fmt: skip
    data = {
        "mechanism": type(mechanism).__name__,
        "metric": mechanism.space.metric,
        "words": len(mechanism.space),
        "measured": len(names) if names is not None else len(table),
        "draws": draws,
        "exact": mechanism.has_law,
        "chosen": epsilons.index(choice.epsilon),
        "prior": _prior(mechanism, prior),
        "before": _before(mechanism, prior),
        "sentence": written,
        "why": str(choice),
        "guarantee": str(choice.mechanism.guarantee),
        "steps": steps,
        "neighbours": [
            {"k": k, "quantiles": np.quantile(each, QUANTILES).tolist()}
            for k, each in zip(ks, np.transpose(near), strict=True)
        ],
    }
    with open_output(os.fspath(path)) as out:
        out.write(_page(data).encode())
    return choice


def _grid(mechanism: Mechanism, chosen: float) -> list[float]:
    """Return several ε around the chosen one, which is among them."""
    grid = []
    for i in range(POINTS):
        epsilon = chosen * 16.0 ** (i / (POINTS - 1) - 0.5)
        try:
            mechanism.with_epsilon(epsilon)
        except ParameterError:
            continue  # below the smallest ε of this mechanism
        grid.append(epsilon)
    return grid


def _named(mechanism: Mechanism, prior: Prior) -> dict[str, Any] | None:
    """Return the exact success of an attacker; None for a mechanism without a law."""
    if not mechanism.has_law:
        return None
    found = attacks.reidentification(mechanism, prior, GUESSES)
    return {
        "guesses": [found.success[g] for g in GUESSES],
        "surest": found.worst_posterior,
        "word": found.word,
        "output": found.output,
    }


def _bits(mechanism: Mechanism, prior: Prior, *, exact: bool) -> dict[str, float] | None:
    """Bits that a release tells of a word, if the law is known; without a prior, by rank."""
    if not mechanism.has_law:
        return None
    by_rank = prior is None or isinstance(prior, str)
    if not exact and len(mechanism.space) > LAWS:
        found = Channel.of(mechanism).bits(prior, sample=LAWS)
    elif by_rank and mechanism.seed is None:
        found = mechanism.bits()
    else:
        found = Channel.of(mechanism).bits(prior)
    return {"value": float(found), "low": found.low, "high": found.high, "sampled": found.sampled}


def _before(mechanism: Mechanism, prior: Prior) -> dict[str, Any]:
    """The prior that bits are under, and a word's entropy before anything is released."""
    by_rank = prior is None or isinstance(prior, str)
    each = prior_of(mechanism, "rank" if by_rank else prior)
    return {"kind": "rank" if by_rank else "given", "entropy": entropy(each)}


def _near(mechanism: Mechanism) -> float | None:
    """Return the mean of `near_losses`; None without a law or if it is infinite."""
    near = float(audit.near_losses(mechanism).mean()) if mechanism.has_law else np.inf
    return near if np.isfinite(near) else None


def _prior(mechanism: Mechanism, prior: Prior) -> dict[str, Any]:
    """Return the attacker's prior and his success without any output."""
    each = prior_of(mechanism, prior)
    shares = np.sort(each)[::-1].cumsum()
    count = len(each)
    numbers = np.unique(np.geomspace(1, count, min(count, 60)).round().astype(int))
    return {
        "kind": "alike" if prior is None else "rank" if isinstance(prior, str) else "given",
        "shares": [(int(n), float(min(shares[n - 1], 1.0))) for n in numbers],
        "blind": [float(min(shares[min(g, count) - 1], 1.0)) for g in GUESSES],
    }


def _written(mechanism: Mechanism, sentence: str | None) -> list[str]:
    """Return the words of the shown sentence; none if the vocabulary lacks the default one's."""
    words = mechanism.tokenize(SENTENCE if sentence is None else sentence)
    known = sum(word in mechanism.space for word in words)
    if sentence is not None and not known:
        raise ParameterError("sentence must have a word of the vocabulary, it has none")
    return words if sentence is not None or known == len(words) else []


def _replacements(mechanism: Mechanism, word: str, draws: int) -> list[tuple[str, float]]:
    words = mechanism.space.words
    if mechanism.has_law:
        law = mechanism.probabilities(word)
        best = np.argsort(-law, kind="stable")[:REPLACEMENTS]
        return [(words[i], float(law[i])) for i in best]
    counts = Counter(mechanism.sample(word, draws).tolist())
    return [(words[i], n / draws) for i, n in counts.most_common(REPLACEMENTS)]


def _page(data: dict[str, Any]) -> str:
    template = (files("fastdx.lab") / "report.html").read_text("utf-8")
    # Inside a script element no text may look like a tag.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    title = html.escape(f"{data['mechanism']} on {data['words']:,} words")
    return template.replace("{{title}}", title).replace("{{data}}", text)
