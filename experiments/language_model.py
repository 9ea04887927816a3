"""A neural model of language as attacker, beside exact n-grams, at equal bits a word.

The table is made of what commit 767a87e3 measured in two hours (`git show
767a87e3:experiments/language_model.py`): numbers of each sentence, no text. Sentences of film
reviews (IMDB, test), one a review; the built-in vocabulary; Tem and Tem on balanced covers, with ε
chosen so that all tell equally many bits a word. Its question is settled: see DECISIONS.md. The
same attack on another base measure is `experiments.readable_peers`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.measures import Numbers, by_texts
from experiments.tables import Experiment, Run, Table
from fastdx.lab.evaluation import Interval

KEPT = Path(__file__).parent / "results" / "language_model.json"
ATTACKERS = ("unigram", "bigram", "trigram", "neural")


def published() -> dict[str, Any]:
    """Return what was measured."""
    return dict(json.loads(KEPT.read_text("utf-8")))


def share_named(named: Numbers, content: Numbers) -> Interval:
    """A share of content words, with an interval for which sentences are drawn."""
    share, half = by_texts(named, content)
    half *= (len(named) / (len(named) - 1)) ** 0.5
    return Interval(share, share - half, share + half)


def named(run: Run) -> Table:
    """The share of content words that each attacker names, at equal bits."""
    kept = published()
    run.seconds += kept["seconds"]
    table = Table(
        "Content words named, by attacker, at equal bits a word",
        ["policy", "ε", "bits", "sentences", "content words", "one by one", "exact bigrams",
         "exact trigrams", "of these also neural", "exact trigrams", "neural",
         "neural - trigrams", "bits left: trigrams", "neural"],
    )  # fmt: skip
    for policy, rows in kept["attacks"].items():
        data = dict(zip(kept["columns"], np.array(rows, dtype=float).T, strict=True))
        content, count = data["content"], f"{len(rows):,}"
        shown = [_cell(share_named(data[name], content)) for name in ATTACKERS]
        more = _cell(share_named(data["neural"] - data["trigram"], content), "+.3f")
        left = [data[f"surprise {name}"].sum() / content.sum() for name in ATTACKERS[2:]]
        table.add(policy, f"{kept['epsilon'][policy]:.2f}", f"{kept['bits'][policy]:.2f}", count,
                  f"{content.sum():,.0f}", *shown[:3], count, *shown[2:], more,
                  *(f"{x:.2f}" for x in left))  # fmt: skip
    entropy, weights, place = kept["entropy"], kept["weights"], kept["columns"].index("words")
    words = sum(row[place] for row in max(kept["attacks"].values(), key=len))
    table.notes.append(
        f"Sentences of film reviews, one a review ({words:,} words), 95% intervals with sentences "
        "as the unit; the difference is paired. *Bits*: what an output tells of its word "
        "under the words' frequencies in other reviews. *Bits left*: mean of "
        "-log2 of the posterior of the true content word. The neural attacker: "
        f"{kept['particles']} particles, {kept['share']:.2f} of the prior, the powers "
        f"{weights[0]:.2f} and {weights[1]:.2f} from 50 other sentences. A word of a plain "
        f"sentence takes {entropy['trigrams']:.2f} bits by trigrams, {entropy['neural']:.2f} by "
        f"the neural model alone, {entropy['mix']:.2f} by their mix."
    )
    return table


def _cell(x: Interval, form: str = ".3f") -> str:
    return f"{x.mean:{form}} [{x.low:{form}}, {x.high:{form}}]"


TABLES: dict[str, Experiment] = {"named": named}
