"""Compares the statements of a release with their one home, and finds planted faults."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import notice
import project
import pytest
import release_check

from helpers import ROOT

STATED = ["Cargo.toml", "CITATION.cff", "CHANGELOG.md", "docs/release-notes.md"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in STATED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_version_is_the_same_everywhere() -> None:
    import fastdx

    assert project.faults() == []
    assert project.field("version") == fastdx.__version__
    lock = (ROOT / "Cargo.lock").read_text("utf-8")
    for crate in ("fastdx", "fastdx-serve"):
        locked = re.search(rf'^name = "{crate}"\nversion = "(.+)"$', lock, re.M)
        assert locked is not None and locked[1] == project.field("version")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CITATION.cff", "version: 0.", "version: 7.", "CITATION.cff does not say"),
        ("CHANGELOG.md", "## 0.", "## Unreleased\n## 0.", "CHANGELOG.md does not begin"),
        ("docs/release-notes.md", "## 0.", "## 7.", "release-notes.md has no section"),
        ("Cargo.toml", 'repository = ""', 'repository = "https://x.org"', "repository-code"),
    ],
)
def test_a_contradiction_is_found(copy: Path, name: str, old: str, new: str, said: str) -> None:
    if name == "Cargo.toml" and project.field("repository"):
        pytest.skip("the address is filled in")
    text = (copy / name).read_text("utf-8")
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1))
    (fault,) = project.faults(copy)
    assert said in fault


def test_an_address_in_both_places_is_no_fault(copy: Path) -> None:
    for name, pattern, line in (
        ("Cargo.toml", r'^repository = ".*"$', 'repository = "https://x.org/f"'),
        ("CITATION.cff", r"^type: software$", "type: software\nrepository-code: https://x.org/f"),
    ):
        text, count = re.subn(pattern, line, (copy / name).read_text("utf-8"), flags=re.M)
        assert count == 1
        (copy / name).write_text(text)
    assert project.field("repository", copy) == "https://x.org/f"
    assert project.faults(copy) == []


def test_a_field_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "1.0.0"\n\n[package]\n')
    assert project.field("version", tmp_path) == "1.0.0"
    with pytest.raises(SystemExit, match="has no repository"):
        project.field("repository", tmp_path)


@pytest.mark.parametrize(
    ("expression", "used"),
    [
        ("MIT OR Apache-2.0", ["MIT"]),
        ("Apache-2.0 / MIT", ["MIT"]),
        ("Unlicense/MIT", ["MIT"]),
        ("Apache-2.0 AND ISC", ["Apache-2.0", "ISC"]),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", ["MIT", "Unicode-3.0"]),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", ["MIT"]),
        ("BSD-3-Clause", ["BSD-3-Clause"]),
    ],
)
def test_the_licence_that_is_used(expression: str, used: list[str]) -> None:
    assert notice.licences(expression) == used


def test_what_a_licence_wants_is_said(tmp_path: Path) -> None:
    (tmp_path / "LICENSE-MIT").write_text("Copyright (c) 2020 A. Person\n\nPermission is ...\n")
    (tmp_path / "LICENSE-APACHE").write_text("Copyright [yyyy] [name of copyright owner]\n")
    (tmp_path / "LICENSE").write_text("Copyright 2021 B. Other\r\nRedistribution ...\r\n")
    crate = {"name": "x", "version": "1.0.0", "authors": ["C"], "license": "MIT OR Apache-2.0",
             "manifest_path": str(tmp_path / "Cargo.toml")}  # fmt: skip
    assert notice.described(crate).splitlines() == [
        "x 1.0.0: MIT", "  Copyright 2021 B. Other", "  Copyright (c) 2020 A. Person"
    ]  # fmt: skip
    said = notice.described({**crate, "license": "BSD-3-Clause"})
    assert said.splitlines()[1:] == ["  Copyright 2021 B. Other", "  Redistribution ..."]


def test_the_notice_names_what_was_not_written_here() -> None:
    text = (ROOT / "NOTICE").read_text("utf-8")
    for name in ("default.fdx", "nouns.fdx", "english.ngrams", "offensive.txt", "nouns.tsv.gz"):
        assert name in text
    crates = dict(re.findall(r"^([\w-]+) (\d\S+): ", text, re.M))
    lock = (ROOT / "Cargo.lock").read_text("utf-8")
    locked = set(re.findall(r'^name = "(.+)"\nversion = "(.+)"$', lock, re.M))
    assert len(crates) > 100 and set(crates.items()) <= locked
    assert {"pyo3", "rayon", "serde_json", "ring", "hyper"} <= set(crates)


def test_the_guide_lists_every_extra() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    table = text.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    extras = set(re.findall(r"^([\w-]+) = ", table, re.M))
    guide = (ROOT / "docs" / "guide.md").read_text("utf-8").split("## Installing")[1]
    listed = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \|", guide.split("\n## ")[0], re.M)
    assert set(re.findall(r"`([\w-]+)`", " ".join(listed))) == extras > {"evaluate", "networks"}


def test_every_step_says_what_it_does() -> None:
    command = [sys.executable, str(ROOT / "tools" / "release_check.py"), "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(lines) == list(release_check.STEPS) and len(lines) >= 10
    assert all(len(line) > 20 for line in lines.values())


def test_a_step_that_cannot_run_here_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent() -> None:
        release_check.needs("a-program-that-nobody-has")

    def broken() -> None:
        raise RuntimeError("something is wrong")

    monkeypatch.setattr(release_check, "STEPS", {"absent": absent, "broken": broken})
    assert (release_check.inner("absent"), release_check.inner("broken")) == (2, 1)
    assert capsys.readouterr().out == (
        "a-program-that-nobody-has is not installed\nsomething is wrong\n"
    )
