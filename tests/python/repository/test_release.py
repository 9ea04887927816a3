"""The statements of a release, in the files that hold them."""

import re
import subprocess

import fastdx
from helpers import ROOT


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_version_and_the_address_are_the_same_everywhere() -> None:
    version = re.escape(fastdx.__version__)
    locked = dict(re.findall(r'^name = "(.+)"\nversion = "(.+)"$', text("Cargo.lock"), re.M))
    assert locked["fastdx"] == locked["fastdx-serve"] == fastdx.__version__
    assert re.search(rf'^version = "{version}"$', text("Cargo.toml"), re.M)
    assert re.search(rf"^version: {version}$", text("CITATION.cff"), re.M)
    assert re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.M)[0] == fastdx.__version__
    address = re.findall(r'^repository = "(.+)"$', text("Cargo.toml"), re.M)
    assert re.findall(r"^repository-code: (.+)$", text("CITATION.cff"), re.M) == address


def test_the_notice_names_data_and_every_crate_that_is_compiled_in() -> None:
    notice = text("NOTICE")
    for name in ("default.fdx", "nouns.fdx", "english.ngrams", "offensive.txt", "nouns.tsv.gz"):
        assert name in notice
    named = set(re.findall(r"^- ([\w-]+) (\d[^\s,]*)", notice, re.M))
    tree = ["cargo", "tree", "--locked", "-e", "normal,no-proc-macro", "--target", "all",
            "--prefix", "none", "--format", "{p}", "-p", "fastdx-serve", "-p", "fastdx",
            "--features", "fastdx/python"]  # fmt: skip
    done = subprocess.run(tree, cwd=ROOT, capture_output=True, text=True, check=True)
    crates = set(re.findall(r"^([\w-]+) v(\S+)", done.stdout, re.M))
    crates = {(name, version) for name, version in crates if not name.startswith("fastdx")}
    assert len(crates) > 100
    assert crates - named == set(), "make notice"


def test_the_page_of_tasks_lists_every_extra() -> None:
    table = text("pyproject.toml").split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    extras = set(re.findall(r"^([\w-]+) = ", table, re.M))
    installing = text("docs/how-to/index.md").split("## Installing")[1]
    listed = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \|", installing, re.M)
    assert set(re.findall(r"`([\w-]+)`", " ".join(listed))) == extras > {"evaluate", "networks"}
