"""Tem's public base measure: its law, its price, and whatever reads a law."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Cover, Tem, from_spec
from fastdx.calibration import choose_epsilon
from fastdx.channel import Channel, NgramPrior
from fastdx.counts import Estimator
from fastdx.lab.comparison import compare
from helpers.command import fails
from helpers.copies import assert_copies
from helpers.errors import refused
from helpers.laws import bits_of, law_of
from helpers.policies import made
from helpers.spaces import normal

E = normal(60, 3, 1)
Q = 1.0 / (np.random.default_rng(2).permutation(60) + 1.0)


# The law, its draws and the bound for every measure: tests/it/covers.rs.
def test_where_it_comes_from(tmp_path: Path) -> None:
    english = Tem(epsilon=3.0, language="frequency")
    assert english.spec["language"] == "frequency" and "in English" in repr(english)
    assert "in English" in str(english.guarantee) and "costs nothing" in str(english.guarantee)
    assert english.base is not None
    expected = NgramPrior.english().frequencies
    np.testing.assert_allclose(
        english.base / english.base.max(), expected / expected.max(), rtol=1e-4
    )
    ranks = Tem(E, 3.0, language="rank")
    assert ranks.spec["language"] == "rank" and ranks != english.with_epsilon(3.0)
    assert (ranks.base == Tem(E, 3.0, language="frequency").base).all()
    assert "rank" in repr(ranks) and ranks.base is not None and ranks.base.dtype == np.uint32
    np.testing.assert_allclose(ranks.base / ranks.base[0], 3.7 / (np.arange(60) + 3.7), rtol=1e-8)
    counts = tmp_path / "counts.tsv"
    counts.write_text("w0\t100\nw1 7.5\nunknown 3\n\nw1 2.5\n", "utf-8")
    counted = Tem(E, 3.0, language=counts)
    assert counted.base is not None
    assert Channel.load(Channel.of(counted).card(), E, language=counts).mechanism == counted
    assert (counted.base / counted.base[0]).round(4).tolist() == [1.0, 0.1] + [0.05] * 58
    spec = counted.spec["language"]
    assert spec["file"] == str(counts) and len(spec["fingerprint"]) == 16
    assert Tem(E, 3.0, language="uniform") == Tem(E, 3.0) and "language" not in Tem(E, 3.0).spec
    assert Tem(E, 3.0, language=np.full(60, 0.5)) == Tem(E, 3.0)
    counts.write_text("w0\t99\n", "utf-8")
    with pytest.raises(fastdx.ParameterError, match="language must be the one with"):
        from_spec(counted.spec, E)


def test_it_is_kept_where_mechanisms_go() -> None:
    for tem in (
        Tem(E, 3.0, language=Q, exclude=["w1"]),
        Tem(epsilon=3.0, language="frequency"),
        Tem(E, 3.0, language=Q, remap=Cover.nearest(E, 3)),
        Tem(E, 2.0, language=Q, certified=True),
    ):
        assert_copies(tem)
        assert tem.with_epsilon(4.0).with_epsilon(3.0) == tem or tem.epsilon < tem.nominal
    tem = Tem(E, 3.0, language=Q)
    assert tem != Tem(E, 3.0) and tem != Tem(E, 3.0, language=Q**2)
    spec = json.loads(json.dumps(tem.spec))
    refused(
        (fastdx.ParameterError, "its fingerprint alone is known", lambda: from_spec(spec, E)),
        (fastdx.ParameterError, "language must be the one with",
         lambda: from_spec(spec, E, language=Q**2)),
    )  # fmt: skip
    assert from_spec(spec, E, language=Q) == tem
    received = Channel.load(Channel.of(tem).card(), E, language=Q)
    assert (received.likelihood("w3") == Channel.of(tem).likelihood("w3")).all()


def test_what_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    wrong_files = {"w0 1\nw1 -3\n": "line 2", "w0\n": "line 1", "w0 nan\n": "line 1",
                   "x 3\n": "none of the words"}  # fmt: skip
    for text, why in wrong_files.items():
        bad.write_text(text, "utf-8")
        with pytest.raises(fastdx.FormatError, match=why):
            Tem(E, 3.0, language=bad)
    with pytest.raises(fastdx.MissingFileError):
        Tem(E, 3.0, language=tmp_path / "missing")
    for wrong in (Q[:5], -Q, np.full((60, 2), 0.5), [*Q[:59], math.nan], [*Q[:59], 1e-12], 3.0):
        for more in ({}, {"cover": Cover.identity(E, exclude=["w1"])}):
            with pytest.raises((fastdx.ParameterError, fastdx.ShapeError, fastdx.InputTypeError)):
                Tem(E, 3.0, language=wrong, **more)
    with pytest.raises(fastdx.ParameterError, match="language must be"):
        Tem(E, 3.0, language=Q, cover=Cover.identity(E).weighted(Q))


def test_receivers_know_it() -> None:
    tem = Tem(E, 3.0, language=Q, oov="mask", seed=1)
    channel = Channel.of(Tem(E, 3.0, language=Q, oov="mask"))
    law, prior = law_of(tem), np.random.default_rng(4).dirichlet(np.ones(60))
    assert float(channel.bits(prior)) == pytest.approx(bits_of(prior, law), rel=1e-9)
    np.testing.assert_allclose(channel.likelihood("w7"), law[:, 7], rtol=1e-9)
    posterior = prior * law[:, 7] / (prior * law[:, 7]).sum()
    np.testing.assert_allclose(channel.posterior("w7", prior), posterior, rtol=1e-9)
    assert float(channel.capacity) == pytest.approx(np.log2(law.max(axis=0).sum()), rel=1e-9)
    assert tem.unchanged.mean == pytest.approx(np.diag(law).mean(), rel=1e-6)
    assert tem.unchanged.worst == pytest.approx(np.diag(law).max(), rel=1e-6)
    # A quarter of the words are w0.
    private = tem.privatize(["w0 w5", "w9 w17"] * 3000)
    found = Estimator(channel).add(private).share(["w0"])
    assert found.low < 0.25 < found.high and found.high - found.low < 0.4


def test_epsilon_is_chosen_for_it() -> None:
    chosen = choose_epsilon(Tem(E, 3.0, language=Q), max_unchanged=0.3, min_outputs=1)
    found = Tem(E, chosen.epsilon, language=Q)
    assert np.diag(law_of(found)).max() <= 0.3
    assert np.diag(law_of(found.with_epsilon(chosen.epsilon * 1.01))).max() > 0.3
    # The uniform measure keeps this promise at another ε.
    assert chosen.epsilon != choose_epsilon(Tem(E, 3.0), max_unchanged=0.3, min_outputs=1).epsilon
    for row in compare({"based": found, "uniform": Tem(E, 3.0)}, prior=None):
        named = law_of(row.made).max(axis=0).sum() / 60
        assert row.values["R"] == pytest.approx(named, rel=1e-6)


# What it cannot be beside: refused_by_name in tests/it/spec.rs.
def test_the_command(tmp_path: Path) -> None:
    e, counts, grams = (tmp_path / name for name in ("e.fdx", "uniform", "grams"))
    E.save(e)
    # A file of this name is one if its path says so.
    counts.write_text("".join(f"w{i} {q}\n" for i, q in enumerate(Q)), "utf-8")
    NgramPrior.train(E, ["w1 w2 w3."], order=3).save(grams)
    base = ("privatize", "--embedding", e, "--exclude", "none", "--epsilon", 3, "--language")
    for language in (counts, "frequency", grams):
        assert made(*base, language) == Tem(E, 3.0, language=language)
    spoken = ("privatize", "--language", "english", "--epsilon")
    assert made(*spoken, 3).spec["language"] == "english"
    fails("without a history", *spoken, "30", stdin="a cup of coffee\n")
    policies = tmp_path / "policies.toml"
    policies.write_text(
        f'[policies.counted]\nepsilon = 3.0\nindex = "{e}"\nlanguage = {{ file = "uniform" }}\n'
    )
    counted = made("privatize", "--policy", f"{policies}:counted")
    assert counted.spec["language"]["file"] == str(counts)
