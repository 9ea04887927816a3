"""Descriptions of every mechanism, for the tests of Specs: words, a law and a cover in files."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from fastdx import Cover, Embedding, Mechanism
from fastdx.channel import NgramPrior
from helpers.draws import ALARM, p_value

WORDS = [f"w{chr(97 + i // 10)}{chr(97 + i % 10)}" for i in range(60)]


NAMES = ["tem", "tem-cover", "tem-stored-cover", "tem-certified", "tem-graph",
         "tem-numbers", "tem-dates", "tem-histories", "laplace", "hyperbolic", "law",
         "mahalanobis", "response", "vickrey"]  # fmt: skip


def every_spec(folder: Path) -> dict[str, dict[str, Any]]:
    """Write the files, and return a Spec of every mechanism by a name of its own."""
    rng = np.random.default_rng(3)
    flat = Embedding(WORDS, rng.normal(size=(60, 2)))
    curved = Embedding(WORDS, rng.uniform(-0.6, 0.6, size=(60, 2)), metric="poincare")
    flat.save(folder / "flat.fdx")
    curved.save(folder / "curved.fdx")
    Cover.nearest(flat, 4).save(folder / "cover.fdx")
    apart = np.abs(np.arange(60)[:, None] - np.arange(60)[None, :])
    np.save(folder / "law.npy", np.exp(-0.3 * apart))
    grams = [" ".join(WORDS), " ".join(WORDS[::3])]
    NgramPrior.train(flat, grams, order=3).save(folder / "grams")
    edges = [f"{a}\t{b}" for a, b in itertools.pairwise(WORDS)]
    (folder / "edges.tsv").write_text("\n".join(edges) + "\n")
    index = str(folder / "flat.fdx")
    noise = {"index": index, "epsilon": 2.0, "exclude": "none"}
    return {
        "tem": {"index": index, "epsilon": 2.0, "gamma": 2.5, "exclude": [WORDS[3]]},
        "tem-cover": {"index": index, "epsilon": 2.0, "cover": 5, "balance": 0.1, "oov": "mask"},
        "tem-stored-cover": {"index": index, "epsilon": 2.0,
                             "cover": {"file": str(folder / "cover.fdx")}, "remap": 2},
        "tem-certified": {"index": index, "epsilon": 1.0, "certified": True, "consistent": True},
        "tem-graph": {"index": {"file": str(folder / "edges.tsv"), "format": "edges"},
                      "epsilon": 1.0},
        "tem-numbers": {"index": index, "epsilon": 2.0, "cover": 4,
                        "numbers": {"epsilon": 20.0, "low": 0.0, "decimal": ","}},
        "tem-dates": {"index": index, "epsilon": 2.0, "numbers": 5.0,
                      "dates": {"epsilon": 0.2, "order": "mdy"}},
        "tem-histories": {"index": index, "epsilon": 2.0, "cover": 3,
                          "language": {"file": str(folder / "grams")}},
        "laplace": {"mechanism": "laplace", **noise, "skip": ["qq"], "dates": 0.5,
                    "numbers": {"epsilon": 1.0, "scale": "linear", "low": -5.0, "high": 500.0}},
        "hyperbolic": {"mechanism": "hyperbolic", "index": str(folder / "curved.fdx"),
                       "epsilon": 8.0, "base": "ball"},
        "law": {"mechanism": "law", "law": str(folder / "law.npy"), "index": index},
        "mahalanobis": {"mechanism": "mahalanobis", **noise, "mixing": 0.3},
        "response": {"mechanism": "response", "index": index, "epsilon": 3.0, "cover": 4},
        "vickrey": {"mechanism": "vickrey", **noise, "tuning": 0.6},
    }  # fmt: skip


def follows_the_law(drawn: list[str], mechanism: Mechanism, word: str) -> bool:
    """Whether releases of one word look drawn from its law."""
    counts = np.bincount(mechanism.space.ids(drawn), minlength=len(mechanism.space))
    return p_value(counts, mechanism.probabilities(word)) > ALARM


def toml(value: Any) -> str:
    """Write a value of a Spec as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)
