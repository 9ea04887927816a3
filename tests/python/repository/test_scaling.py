"""Exponents and tables in benches/scaling.py, from times that are known."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from helpers import ROOT


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling", ROOT / "benches" / "scaling.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


scaling = load()


def test_the_exponent_of_a_power() -> None:
    pytest.importorskip("scipy")
    sizes = [10.0, 100.0, 1000.0, 10_000.0]
    found = scaling.fit(sizes, [3e-6 * n**1.5 for n in sizes])
    assert (found.a, found.b) == (pytest.approx(3e-6), pytest.approx(1.5))
    assert found.half < 1e-6
    assert str(found).startswith("1.50 ± 0.00")


def test_the_interval_holds_the_exponent_as_often_as_it_says() -> None:
    """2,000 trials: fewer than 92.5% of 95% come once in 10^6."""
    pytest.importorskip("scipy")
    rng = np.random.default_rng(1)
    sizes = np.array([1e3, 3e3, 1e4, 3e4, 1e5])
    held = 0
    for noise in rng.normal(0, 0.2, (2_000, 5)):
        found = scaling.fit(sizes, 2.0 * sizes**0.8 * np.exp(noise))
        held += abs(found.b - 0.8) <= found.half
    assert 0.925 <= held / 2_000 <= 0.975


def test_small_sizes_and_empty_measurements_do_not_count() -> None:
    pytest.importorskip("scipy")
    sizes = [1, 10, 100, 1000, 10_000]
    values = [7.0, 7.0, 100.0, 1000.0, 10_000.0]
    assert scaling.Series("x", sizes, values, 100).fit().b == pytest.approx(1)
    assert scaling.Series("x", sizes, [0.0, 0.0, 0.0, 5.0, 9.0], 1).exponent() == "too few sizes"


def test_what_there_is_no_memory_for_is_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scipy")
    names = ("make", "first", "new", "warm", "memory")
    monkeypatch.setattr(scaling, "available", lambda: 1.0)
    monkeypatch.setattr(scaling, "measured", lambda part, n: dict.fromkeys(names, n / 1e6))
    series = scaling.of_vocabulary(np.inf)
    assert [s.sizes[-1] for s in series] == [300_000] * 5
    out = capsys.readouterr().out
    assert "1,000,000 words are left out: they need about 2 GB, 1 GB are free." in out
    assert "2,000,000 words are left out" in out
