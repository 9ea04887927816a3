"""Exact n-grams as attackers on many sentences: measured, kept and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from experiments import data, language_model, ngrams, tables


def test_counts_are_measured_once_kept_and_shown(tmp_path: Path, monkeypatch: Any) -> None:
    policy = language_model.Policy(None, 2.0)
    for name, value in {
        "POLICIES": (policy,), "MOST": 2.0, "HELD_OUT": 0, "KEPT": tmp_path / "kept.json",
        "published": lambda: {"epsilon": {str(policy): 3.0}},
    }.items():  # fmt: skip
        monkeypatch.setattr(ngrams, name, value)
    know = language_model.Knowledge(data.Sample(), 300)
    ngrams.measure(tmp_path, know, 6)
    found = ngrams.lines(tmp_path)
    assert [line["sentence"] for line in found] == list(range(6))

    # The same by hand, for trigrams.
    released = language_model.Released.of(know, policy, 3.0, 6)
    for i, line in enumerate(found):
        posterior, words = released.exact(know, i, 3), know.attacked[i].words
        right = [
            int(np.argmax(np.where(know.content, posterior.marginals(place), 0.0))) == word
            for place, word in enumerate(words) if know.content[word]
        ]  # fmt: skip
        assert (line["content"], line["trigram"]) == (len(right), sum(right))

    # A second run finds nothing to do.
    ngrams.measure(tmp_path, know, 6)
    assert ngrams.lines(tmp_path) == found
    ngrams.keep(tmp_path, ngrams.KEPT)

    class Real(data.Sample):
        made_up = False

    (row,) = ngrams.named(tables.Run(Real(), "ngrams")).rows
    content = sum(line["content"] for line in found)
    named = sum(line["bigram"] for line in found)
    assert row[:3] == [str(policy), "6", str(content)]
    assert row[4].startswith(f"{named / content:.3f} [")
