"""The decisions of `make bench-check`, and the names in `make profile`."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from helpers import ROOT


def load(name: str) -> ModuleType:
    """A script of benches/. The folder is not on the path: it has files called like modules."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benches" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check = load("check")
flames = load("flames")  # which imports the other one


@pytest.mark.parametrize(("rounds", "k"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (18, 5)])
def test_the_interval_is_that_of_the_sign_test(rounds: int, k: int) -> None:
    """Beside the table of the sign test for 95% (Dixon and Mood 1946)."""
    ratios = np.random.default_rng(1).permutation(rounds) + 1.0
    assert check.interval(ratios) == (k, (rounds + 1) / 2, rounds - k + 1)


def test_few_rounds_say_nothing() -> None:
    assert check.interval([3.0] * 5) == (0.0, 3.0, math.inf)
    assert check.judge([3.0] * 5, 1.0, 1.1).word == "open"


@pytest.mark.parametrize("rounds", [6, 9, 18, 25])
def test_the_interval_holds_the_median_as_often_as_it_says(rounds: int) -> None:
    """For noise with heavy tails. 20,000 trials: a share of 95% below 93.9% comes once in 10^11."""
    rng = np.random.default_rng(2)
    trials = np.exp(0.1 * rng.standard_cauchy((20_000, rounds)).clip(-50, 50))
    held = [low <= 1.0 <= high for low, _, high in map(check.interval, trials)]
    assert np.mean(held) >= 0.939


def test_judged_by_the_interval_not_by_the_median() -> None:
    quiet = [1.14, 1.15, 1.15, 1.16, 1.15, 1.17, 1.15, 1.14, 1.16]
    assert check.judge(quiet, 1.0, 1.10).word == "slower"
    assert check.judge(quiet, 1.0, 1.20).word == "as before"
    noisy = [0.8, 1.0, 1.05, 1.12, 1.15, 1.2, 1.3, 1.4, 1.5]
    verdict = check.judge(noisy, 1.0, 1.10)
    assert (verdict.low, verdict.ratio, verdict.high) == (1.0, 1.15, 1.4)
    assert verdict.word == "open"
    # One round in nine that something else disturbed, however much, changes nothing.
    assert check.judge([*quiet[:8], 0.1], 1.0, 1.10).word == "slower"
    assert check.judge([1.0] * 8 + [50.0], 1.0, 1.10).word == "as before"


def test_a_gain_that_was_accepted_cannot_be_lost_unseen() -> None:
    """A row that became twice as fast, and lost a fifth of that again, is faster than the base."""
    ratios = [0.60, 0.61, 0.60, 0.59, 0.60, 0.62, 0.60, 0.60, 0.61]
    assert check.judge(ratios, 1.0, 1.10).word == "faster"
    assert check.judge(ratios, 0.5, 1.10).word == "slower"
    assert check.judge(ratios, 0.6, 1.10).word == "as before"


def planted(monkeypatch: pytest.MonkeyPatch, slow: dict[str, float], lacks: set[str]) -> None:
    """Runs with noise of ±5% in the place of processes; the new commit is slower by a factor."""
    rng = np.random.default_rng(3)

    def run(name: str, tree: Path) -> dict[str, object]:
        if tree.name == "base" and name in lacks:
            return {"lacks": "AttributeError: no such thing"}
        factor = slow.get(name, 1.0) if tree.name == "new" else 1.0
        times = {clock: factor * rng.uniform(0.95, 1.05) for clock in ("cpu", "wall")}
        return {"times": times}

    monkeypatch.setattr(check, "run_there", run)


def test_the_slower_row_fails_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, {"search-50": 1.3, "command": 1.6}, lacks={"ids"})
    found = check.measure(list(check.ROWS), Path("base"), Path("new"), 9, {})
    verdicts = check.verdicts_of(found, {})
    slower = {k for k, v in verdicts.items() if v.word == "slower"}
    assert slower == {"search-50", "command", "command wall"}
    assert found.lacking == {"ids": "AttributeError: no such thing"}
    shown = check.table(found, verdicts, {})
    assert "| ids |" in shown and "new: base has" in shown
    assert shown.count("**slower**") == 3
    assert len(shown.splitlines()) == 2 + len(verdicts) + 1


def test_what_noise_leaves_open_gets_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, {"lists": 1.12}, lacks=set())
    found = check.measure(["lists", "ids"], Path("base"), Path("new"), 9, {})
    assert len(found.ratios["ids"]) == 9
    assert 9 < len(found.ratios["lists"]) <= 18


def test_a_row_that_the_new_commit_cannot_run_ends_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "run_there", lambda name, tree: {"lacks": "TypeError: x"})
    with pytest.raises(SystemExit, match="ids: the new commit cannot run it: TypeError: x"):
        check.measure(["ids"], Path("base"), Path("new"), 9, {})


def test_rows_that_were_not_measured_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "BASELINE", tmp_path / "baseline.json")
    monkeypatch.setattr(check, "instructions", lambda: "this")
    other = {"ids": 0.1}
    check.write("c", {"ids": 0.81239}, {"this": {"lists": 0.5, "ids": 0.7}, "other": other})
    here = {"ids": 0.812, "lists": 0.5}
    assert check.stored() == {"commit": "c", "accepted": {"other": other, "this": here}}
    assert "ids 0.700 -> 0.812" in capsys.readouterr().out


def test_the_stored_baseline_names_rows_that_exist() -> None:
    stored = json.loads((ROOT / "benches" / "baseline.json").read_text("utf-8"))
    known = {check.key(n, c) for n, r in check.ROWS.items() for c in r.clocks}
    for accepted in stored["accepted"].values():
        assert set(accepted) <= known
    assert len(stored["commit"]) == 40


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("fastdx::search::filter::Filter::pass", "fastdx::search::filter::Filter::pass"),
        ("<fastdx::embedding::Embedding as fastdx::space::MetricSpace>::neighbors",
         "fastdx::embedding::Embedding::neighbors"),
        ("try_reduce<core::result::Result<(), E>, fn((), ()) -> core::result::Result<(), E>>",
         "try_reduce"),
        ("core::slice::sort::select::partition_at_index::<u64, f>+0x1f",
         "core::slice::sort::select::partition_at_index"),
        ("__GI___libc_malloc", "__GI___libc_malloc"),
    ],
)  # fmt: skip
def test_names_of_frames_without_their_types(name: str, short: str) -> None:
    assert flames.short(name) == short


def test_frames_that_only_call_on_are_left_out() -> None:
    script = """python 12 1.5: 1001001 cpu-clock:
\t  7f01 fastdx::search::filter::Filter::pass (/x/_core.abi3.so)
\t  7f01 pass<A> (inlined)
\t  7f02 rayon_core::join::join_context::{{closure}} (/x/_core.abi3.so)
\t  7f03 call_once<B> (inlined)
\t  7f04 _PyEval_EvalFrameDefault+0x2 (/usr/bin/python3.11)
\t  7f05 PyObject_Call (/usr/lib/libpython3.11.so.1.0)

"""
    assert (
        flames.frames(script)
        == """python 12 1.5: 1001001 cpu-clock:
\t  7f01 fastdx::search::filter::Filter::pass (inlined)
\t  7f05 python (/usr/lib/libpython3.11.so.1.0)

"""
    )
