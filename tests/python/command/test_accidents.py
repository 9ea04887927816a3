"""Accidents that the command and the package stop: each is named, with what to do."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import Cover, Embedding, MultivariateLaplace, Tem
from fastdx.budget import Ledger
from fastdx.channel import Channel
from fastdx.cli import main
from helpers.command import Command

CSV = "id,text\n1,the coffee was cold\n2,a nice tea\n"


ALIASES: dict[str, Callable[[Path], Path]] = {
    "the same path": lambda path: path,
    "a path with dots": lambda path: path.parent / ".." / path.parent.name / path.name,
    "a symbolic link": lambda path: _made(path, Path.symlink_to),
    "a hard link": lambda path: _made(path, Path.hardlink_to),
}


def _made(path: Path, link: Callable[[Path, Path], None]) -> Path:
    alias = path.with_name(f"alias{path.suffix}")
    link(alias, path)
    return alias


COMMANDS: dict[str, tuple[str, list[str]]] = {
    "privatize": (CSV, ["privatize", "{in}", "--column", "text", "-o", "{out}"]),
    "a report": (CSV, ["privatize", "{in}", "--column", "text", "-o", "{other}", "--report",
                       "{out}"]),
    "the words that are skipped": ("tea\n", ["privatize", "--skip", "{in}", "-o", "{out}"]),
    "convert": ("a 1 2\nb 3 4\n", ["convert", "{in}", "-o", "{out}"]),
    "index": ("a 1 2\nb 3 4\n", ["index", "build", "--embedding", "{in}", "-o", "{out}"]),
    "decode": ("tea\n", ["decode", "{in}", "-o", "{out}"]),
    "a page": ("tea\n", ["calibrate", "--texts", "{in}", "-o", "{out}"]),
}  # fmt: skip


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_never_replaces_an_input(
    name: str, alias: str, tmp_path: Path, command: Command
) -> None:
    content, line = COMMANDS[name]
    original = tmp_path / "f.csv"
    original.write_text(content)
    names = {"in": original, "out": ALIASES[alias](original), "other": tmp_path / "other.csv"}
    assert "is an input, too" in command(*[part.format(**names) for part in line], code=1).err
    assert original.read_text() == content


def test_the_json_beside_a_page_replaces_no_input(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "f.json"
    path.write_text('[{"text": "tea"}]')
    assert "is an input, too" in command("evaluate", path, "-o", tmp_path / "f.html", code=1).err


def test_a_policy_that_leaves_most_words_warns_once() -> None:
    english = fastdx.Embedding.default()
    e = fastdx.Embedding(english.words[:2000], english.vectors[:2000])
    for kind in (Tem, MultivariateLaplace):
        m = kind(e, 100.0)
        with pytest.warns(fastdx.UnchangedWarning, match=r"\d+% of common words come back"):
            m.privatize("the coffee was cold")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            m.privatize("the coffee was cold")
            kind(e, 3.0).privatize("the coffee was cold")
            # A padded call must not take longer by what it holds.
            kind(e, 100.0, pad=0.001).privatize("the coffee was cold")
            warnings.simplefilter("ignore", fastdx.UnchangedWarning)
            kind(e, 100.0).privatize("the coffee was cold")


def test_texts_of_another_language_warn_once() -> None:
    german = "Der Kaffee war kalt und die Bedienung unfreundlich, wir kommen nicht wieder. "
    tem = Tem(epsilon=3.0)
    with pytest.warns(fastdx.UnknownWordsWarning, match=r"\d+% of the words are not in the voc"):
        tem.privatize([german] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tem.privatize([german] * 10)
        # Few words say nothing.
        Tem(epsilon=3.0).privatize(german)
        Tem(epsilon=3.0).privatize(["The coffee was cold and the waiter was rude."] * 10)
    with pytest.warns(fastdx.UnknownWordsWarning):
        Tem(epsilon=3.0).privatize("咖啡 很 冷 服务员 很 粗鲁 " * 20)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["privatise"], "did you mean privatize?"),
        (["xyz"], "there are try, privatize, serve"),
        (["decode", "{csv}", "--card", "{card}"], "f.csv: csv needs --column NAME"),
        (
            ["evaluate", "{csv}", "--text-column", "text", "-o", "{page}"],
            "at least 40 texts, got 2",
        ),
        (["convert", "{pointer}", "-o", "{page}"], "git lfs pull"),
        (["evaluate", "{csv}", "-o", "{page}.json"], "--output must name the page"),
        (["calibrate", "-o", "{page}/page.html"], "p.html: No such file or directory"),
    ],
)
def test_messages_of_the_command(
    line: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"csv": tmp_path / "f.csv", "page": tmp_path / "p.html",
             "pointer": tmp_path / "v.txt", "card": tmp_path / "c.json"}  # fmt: skip
    names["card"].write_text(Channel.of(Tem.recommended()).card())
    names["csv"].write_text(CSV)
    names["pointer"].write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n")
    assert main([part.format(**names) for part in line]) in (1, 2)
    shown = capsys.readouterr().err
    assert message in shown and "coffee" not in shown


def test_messages_of_the_package(tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    tem = Tem(Embedding(["anna", "tea"], [[0.0], [1.0]]), 1.0)
    frame = pandas.DataFrame({"text": ["tea"], "id": [1]})
    two = pandas.DataFrame([["tea"]], columns=pandas.MultiIndex.from_tuples([("a", "b")]))
    itself: list[Any] = ["tea"]
    itself.append(itself)
    deep: list[Any] = ["tea"]
    for _ in range(100_000):
        deep = [deep]
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Tem(tem.space, 1.0, exclude="anna"), r"exclude must be a list of words.*\['…'\]"),
        (lambda: Cover.nearest(tem.space, 1, exclude="anna"), "exclude must be a list of words"),
        (lambda: tem.privatize_frame(frame, "txt"), "no column 'txt': did you mean 'text'"),
        (lambda: tem.privatize_frame(frame, "zzz"), "no column 'zzz': there are 'text', 'id'"),
        (lambda: tem.privatize_frame(frame, 7), "no column .7.: there are"),
        (lambda: tem.privatize_frame(two, "a"), "MultiIndex"),
        (lambda: tem.privatize(deep), "nested too deeply, or holds itself"),
        (lambda: tem.privatize(itself), "nested too deeply, or holds itself"),
        (lambda: Ledger(tmp_path / "l", 5.0).spent("a\ud800"), "account.*lone surrogate"),
        (lambda: Ledger(tmp_path / "l", 5.0).charge("a\ud800", 1.0), "account.*lone surrogate"),
    ]
    for call, message in cases:
        with pytest.raises(fastdx.FastdxError, match=message):
            call()
    numbered = pandas.DataFrame([["tea", 1]])
    assert tem.privatize_frame(numbered, 0)[0][0] in ("anna", "tea")
    assert tem.privatize_frame(numbered, [0]).shape == (1, 2)
    nothing = polars.DataFrame({"text": [None, None]})
    assert tem.privatize_frame(nothing, "text").equals(nothing)
    assert np.array_equal(tem.privatize(polars.Series([None])).to_list(), [None])
