"""Figures in documents were measured at commits that everybody can have."""

import subprocess
from pathlib import Path

import pytest
from tools import figures, pictures

from helpers import ROOT

WAITING = {"3d34b9e", "9695de7"}
"""Commits of an older history, whose blocks wait to be measured again."""


def whole_history() -> bool:
    asked = ["git", "rev-parse", "--is-shallow-repository"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() == "false"


def strangers(pages: list[Path]) -> set[str]:
    """The stamps of blocks that HEAD does not come from."""
    found = {stamp for page in pages for stamp in figures.stamps(page)}
    return {stamp for stamp in found if not figures.known(stamp)}


@pytest.mark.skipif(not whole_history(), reason="no whole history: git fetch --unshallow")
def test_every_figure_is_of_a_commit_of_this_history(tmp_path: Path) -> None:
    pages = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")})
    assert strangers(pages) <= WAITING
    head = figures.git("rev-parse", "--short", "HEAD")
    liar = tmp_path / "page.md"
    for stamp, found in ((head, set()), ("abcdef0", {"abcdef0"})):
        liar.write_text("<!-- figures a: python examples/bits.py -->\n\n1\n\n"
                        f"*`python examples/bits.py`, commit {stamp}, 2 cores.*\n\n"
                        "<!-- end of figures -->\n", "utf-8")  # fmt: skip
        assert strangers([liar]) == found
    liar.write_text("<!-- figures a: python x.py -->\n1\n<!-- end of figures -->\n", "utf-8")
    assert strangers([liar]) == {"none"}


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_have_the_numbers_of_the_tables(name: str) -> None:
    picture = pictures.PICTURES[name]()
    digest = picture.digest()
    for scheme in pictures.COLORS:
        file = pictures.FOLDER / f"{name}-{scheme}.svg"
        text = file.read_text("utf-8")
        assert digest in text, f"python tools/figures.py --only picture-{name}"
        assert len(text) < 60_000
    assert picture._replace(numbers={**picture.numbers, "liar": 0.5}).digest() != digest
