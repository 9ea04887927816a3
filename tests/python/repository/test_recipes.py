"""Recipes, and the page of the command, run: blocks in order, in one shell, in an empty folder."""

import os
import re
import shlex
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tools.page_outputs import Block, examples

import fastdx
from helpers import ROOT, SHARED
from helpers.service import built

RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
PAGES = [*RECIPES, ROOT / "docs" / "command.md"]
ENGLISH = fastdx.Embedding.default()
EXTRAS = {
    "presidio": ["presidio_analyzer", "presidio_anonymizer", "spacy"],
    "tickets": ["sklearn", "pandas"],
}


def shell(found: list[Block], folder: Path) -> str:
    """Return one script of all blocks; block i writes its output into i.out."""
    lines = ["set -eu -o pipefail", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    for i, block in enumerate(found):
        out = shlex.quote(str(folder / f"{i}.out"))
        if block.language == "python":
            (folder / f"{i}.py").write_text(block.code, "utf-8")
            lines.append(f"python {shlex.quote(str(folder / f'{i}.py'))} > {out}")
        else:
            lines += ["{", block.code, f"}} > {out}"]
    return "\n".join(lines)


def programs(folder: Path) -> str:
    """Write `python` and `fastdx` of this interpreter: the folder that holds them."""
    for name, more in {"python": "", "fastdx": "-m fastdx "}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {more}"$@"\n', "utf-8")
        path.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_a_recipe_runs_and_prints_what_it_shows(path: Path, tmp_path: Path) -> None:
    lacking = [name for name in EXTRAS.get(path.stem, []) if find_spec(name) is None]
    if lacking:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    page = path.read_text("utf-8")
    work, own = tmp_path / "work", tmp_path / "own"
    work.mkdir()
    own.mkdir()
    search = [programs(own)]
    if "nohup fastdx serve" in page:
        search.append(str(built().parent))
        with socket.create_server(("127.0.0.1", 0)) as free:
            page = page.replace("8080", str(free.getsockname()[1]))
    if "snips." in page:
        if not SHARED.is_dir():
            pytest.skip("../shared is not there")
        for data in (SHARED / "text").glob("snips.*"):
            lines = data.read_text("utf-8").splitlines(keepends=True)
            (work / data.name).write_text("".join(lines[:9] + lines[9::9]), "utf-8")
    # Laws of 20,000 words, and all requests, take seconds more. What is drawn is not compared.
    fastdx.Embedding(ENGLISH.words[:2000], ENGLISH.vectors[:2000]).save(own / "some.fdx")
    own_law = r"--mechanism (tem|response)|^fastdx (counts|decode) \S+|--report \S+"
    page = re.sub(own_law, rf"\g<0> --embedding {own}/some.fdx", page, flags=re.M)
    page = re.sub("--report", "--epsilon 2.6 --language rank --report", page)
    assert {*re.findall(r"^```(\w+)$", page, re.M)} <= {"sh", "python", "text"}
    assert ">>>" not in page and "<!-- check" not in page
    found = examples(page, ("sh", "python"))
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([*search, os.environ["PATH"]]),
        "PYTHONPATH": str(Path(fastdx.__file__).parents[1]),
    }
    done = subprocess.run(["bash", "-c", shell(found, own)], cwd=work, env=environment,
                          capture_output=True, text=True, check=False, timeout=600)  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    for i, block in enumerate(found):
        if block.output is not None and not block.random:
            assert (own / f"{i}.out").read_text("utf-8") == block.output, block.code
