"""The page to choose ε on, in a browser where there is one, and the plots."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, MultivariateLaplace, Tem
from fastdx.lab import attacks, audit, plots, report
from fastdx.lab.hyperbolic import distance
from helpers.browser import BROWSER, dom
from helpers.command import Command
from helpers.laws import bits_of, law_of, zipf
from helpers.spaces import normal


def small() -> Embedding:
    x = np.random.default_rng(1).standard_normal((400, 8))
    words = ["<b>bold</b>", "</script>", *(f"w{i}" for i in range(398))]
    return Embedding(words, x)


@pytest.mark.parametrize("laplace", [False, True])
def test_the_page_stands_alone(tmp_path: Path, laplace: bool) -> None:
    e = small()
    m = MultivariateLaplace(e, 1.0, seed=1) if laplace else Tem(e, 1.0)
    page = tmp_path / "report.html"
    choice = report.write(
        page, m, min_outputs=60, words=e.words[:60], examples=["<b>bold</b>", "w3"], draws=300
    )
    text = page.read_text("utf-8")
    assert "http://" not in text and "https://" not in text and "src=" not in text
    assert "{{" not in text and text.count("</script>") == 1
    assert f'"epsilon": {choice.epsilon!r}' in text or f'"epsilon":{choice.epsilon!r}' in text
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_the_page_renders_and_the_slider_moves(tmp_path: Path) -> None:
    e = small()
    page = tmp_path / "report.html"
    choice = report.write(
        page, Tem(e, 1.0), min_outputs=60, words=e.words[:60], examples=["<b>bold</b>", "w3"]
    )
    profile, patience = tmp_path / "profile", "--virtual-time-budget=2000"
    shown = dom(page.as_uri(), profile, patience)
    page_part = shown.split("<script>")[0]
    assert "(chosen)" in page_part and page_part.count("<svg") == 5
    assert "&lt;b&gt;bold&lt;/b&gt;" in shown and "<b>bold" not in page_part
    for place, points in (("attack", report.ATTACKED), ("bits", 13), ("curve", 2 * 13)):
        chart = page_part.split(f'<div id="{place}">')[1].split("</svg>")[0]
        circles = re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', chart)
        assert len(circles) == points and len(set(circles)) > 2
    # Words of its own: no English sentence.
    assert re.search(r'<section id="sentence" hidden', page_part)
    # As a hand on the slider does it.
    move = "<script>slider.value = 0; slider.dispatchEvent(new Event('input'));</script></body>"
    moved_page = tmp_path / "moved.html"
    moved_page.write_text(page.read_text("utf-8").replace("</body>", move), "utf-8")
    moved = dom(moved_page.as_uri(), profile, patience)
    assert "(chosen)" not in moved.split("<script>")[0]
    smallest = re.search(r'<output id="shown">([\d.]+)', moved)
    assert smallest and float(smallest[1]) == pytest.approx(choice.epsilon / 4, rel=0.01)
    assert moved.split("<script>")[0] != page_part


def test_bad_reports_are_refused(tmp_path: Path) -> None:
    tem = Tem(small(), 1.0)
    with pytest.raises(fastdx.UnknownWordError, match=r"words\[0\]"):
        report.write(tmp_path / "r.html", tem, min_outputs=60, words=["w1"], examples=["zebra"])
    assert not list(tmp_path.iterdir())


def test_covers_and_attackers_on_the_page(tmp_path: Path, command: Command) -> None:
    e = normal(80, 3, 2)
    e.save(tmp_path / "e.fdx")
    page = tmp_path / "page.html"
    args = ["calibrate", "--embedding", str(tmp_path / "e.fdx"), "--cover", "5",
            "--exclude", "none", "--max-unchanged", "1", "--min-outputs", "1",
            "--max-bits", "2", "--by-rank", "--sample", "30", "--example", "w7",
            "-o", str(page), "-q"]  # fmt: skip
    assert "is the largest at which every word" in command(*args).out
    text = page.read_text("utf-8")
    assert "tells at most 2 bits a word" in text and '"w7"' in text
    assert "above 0.2" in text  # the floor, in the guarantee
    data = json.loads(text.split("const data = ")[1].split(";\n")[0])
    attacked = [step for step in data["steps"] if step["named"]]
    assert len(attacked) == report.ATTACKED and data["steps"][data["chosen"]] in attacked
    assert [step["near"] is None for step in data["steps"]].index(False) == data["chosen"]
    for step in attacked:
        tem = fastdx.Tem(e, step["epsilon"], cover=5)
        found = attacks.reidentification(tem, "rank", (1, 10, 100))
        assert step["named"]["guesses"] == pytest.approx(list(found.success.values()))
        assert step["near"] is None or step["near"] == pytest.approx(audit.near_losses(tem).mean())
    # At every step, by the channel.
    shares = zipf(80)
    entropy = -(shares * np.log2(shares)).sum()
    assert data["before"] == {"kind": "rank", "entropy": pytest.approx(entropy)}
    told = [step["bits"] for step in data["steps"]]
    for step, bits in zip(data["steps"], told, strict=True):
        expected = bits_of(shares, law_of(fastdx.Tem(e, step["epsilon"], cover=5)))
        assert bits["value"] == pytest.approx(expected, abs=1e-9)
        assert bits["low"] == bits["value"] == bits["high"] and bits["sampled"] == 0
    values = [bits["value"] for bits in told]
    assert values == sorted(values) and 0 < values[0] < values[-1] < entropy
    prior = data["prior"]
    assert prior["kind"] == "rank" and prior["shares"][-1] == [80, pytest.approx(1)]
    assert prior["blind"] == pytest.approx([*shares.cumsum()[[0, 9]], 1])
    assert data["sentence"] == []


def test_a_sentence_on_the_page(tmp_path: Path) -> None:
    e = Embedding(["tea", "coffee", "milk"], [[0.0], [1.0], [2.0]])
    tem, page = Tem(e, 3.0, oov="drop"), tmp_path / "page.html"
    promise = {"max_unchanged": 0.6, "min_outputs": 1, "examples": ["tea"]}
    report.write(page, tem, **promise, sentence="Tea, no milk <b>")
    data = json.loads(page.read_text("utf-8").split("const data = ")[1].split(";\n")[0])
    assert data["sentence"] == ["tea", "no", "milk", "<b>"]
    for step in data["steps"]:
        assert len(step["released"]) == report.RELEASES
        assert all({*words} <= {*e.words} for words in step["released"])
    # At the largest ε words stay.
    assert data["steps"][-1]["most_N_w"][0] > data["steps"][0]["most_N_w"][1]
    with pytest.raises(fastdx.ParameterError, match="sentence"):
        report.write(page, tem, **promise, sentence="nothing of this")


def test_the_disk_shows_edges_as_geodesics() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    words = ["thing", "animal", "plant", "oak"]
    x = np.array([[0.0, 0.1], [0.7, 0.2], [-0.6, -0.3], [-0.5, -0.8]], np.float32)
    space = Embedding(words, x, metric="poincare")
    axes = plots.disk(space, [("animal", "thing"), ("oak", "animal")], ["oak"])
    assert [label.get_text() for label in axes.texts] == ["oak"]

    def excess(path: np.ndarray) -> float:
        """How much longer the way by way of points of a path is than that between its ends."""
        ends = (np.repeat(path[[end]], len(path), axis=0) for end in (0, -1))
        by_way = sum(distance(end, path) for end in ends)
        return float(np.max(by_way / distance(path[[0]], path[[-1]]) - 1))

    for line, pair in zip(axes.lines[1:3], [(1, 0), (3, 1)], strict=True):
        path = line.get_xydata()
        assert np.allclose(path[[0, -1]], x[list(pair)], atol=1e-6) and abs(excess(path)) < 1e-6
    liar = np.linspace(x[3], x[1], 50).astype(float)  # a straight line
    assert excess(liar) > 0.01
    for wrong in (small(), Embedding(words, np.pad(x, ((0, 0), (0, 1))), metric="poincare")):
        with pytest.raises(fastdx.ParameterError, match="space"):
            plots.disk(wrong)
