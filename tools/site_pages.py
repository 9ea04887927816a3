"""Functions that mkdocs calls for pages of the site outside of docs/ (see mkdocs.yml).

Every document has one home in the repository. This module gives documents outside docs/ a place on
the site, and reads the command's options, the file format and the API from the program itself. All
links work in the repository; the site shows a link to a file outside of it as text.
"""

from __future__ import annotations

import argparse
import html
import pkgutil
import posixpath
import re
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastdx
from fastdx import _core, cli, engines, lab
from fastdx.cli.options import _Help

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

INCLUDED = {
    "README.md": "index.md",
    "LIMITATIONS.md": "reference/limitations.md",
    "REFERENCES.md": "reference/references.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "DESIGN.md": "project/architecture.md",
    "DECISIONS.md": "project/decisions.md",
    "SECURITY.md": "project/security.md",
    "src/mechanism/tem/README.md": "project/how-a-tem-draws.md",
    "src/distance/search/README.md": "project/how-the-search-is-exact.md",
}
"""Documents outside docs/ with their places on the site."""

API = "reference/api"
MECHANISMS = "fastdx.mechanisms"
FORMAT = Path("src/words/embedding/format/native.rs")
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
PRE = re.compile(r"<pre[^>]*>.*?</pre>", re.S)
PROMPT = re.compile(r'<span class="gp">(?:&gt;&gt;&gt;|\.\.\.|\$) ?</span>')
TAG = re.compile(r"<[^>]*>")
PICTURE = re.compile(r'<picture>.*?<img alt="(.*?)" src="(.*?)-light.svg"></picture>')
FENCE = re.compile(r"^(\s*)(```|~~~)")


# --- what the site is made of


def public_modules() -> list[str]:
    """Return the package's modules: mechanisms, the package, others by name, the laboratory."""
    found = {m.name for m in pkgutil.iter_modules(fastdx.__path__) if not m.name.startswith("_")}
    names = [*sorted(found - {"cli", "engines", "lab", "mechanisms"})]
    for room in (engines, lab):
        name = room.__name__.removeprefix("fastdx.")
        inner = [m.name for m in pkgutil.iter_modules(room.__path__) if m.name[0] != "_"]
        names += [name, *(f"{name}.{n}" for n in inner if n != "commands")]
    return ["fastdx.mechanisms", "fastdx", *(f"fastdx.{n}" for n in names)]


def api_navigation() -> list[dict[str, Any]]:
    """Yield the pages of the API; engines and the laboratory have sections of their own."""
    pages = {name: f"{API}/{name}.md" for name in public_modules()}
    engines = {name for name in pages if name.startswith("fastdx.engines")}
    lab = {name for name in pages if name.startswith("fastdx.lab")}
    own = [{name: page} for name, page in pages.items() if name not in engines | lab]
    more = {"Engines": engines, "Laboratory": lab}
    return [*own, *({t: [{n: page} for n, page in pages.items() if n in more[t]]} for t in more)]


def api_page(name: str) -> str:
    """Return the page of a module; the page of the package itself has only names from Rust."""
    if name == "fastdx":
        inner = [n for n in sorted(fastdx.__all__) if n in _core.__all__ and not n.startswith("_")]
        about = (
            f"`Tem` and the other mechanisms are in [fastdx.mechanisms]({MECHANISMS}.md), and can "
            "be imported from here too. This page has words, covers, distances and guarantees."
        )
        whole = "inherited_members: true"  # of Embedding and WordGraph, what they share
        each = (described(f"fastdx._core.{n}", whole) for n in inner)
        return "\n\n".join([f"# {name}", about, *each])
    if name == MECHANISMS:
        kinds = [m.__name__ for m in fastdx.mechanisms.MECHANISMS.values() if m is not fastdx.Tem]
        inner = [*kinds, "FiniteLaw", "from_spec", "MECHANISMS", "Common", "Unchanged",
                 "PrivateSpans", "Select", "improbable", "rare"]  # fmt: skip
        # Most readers look for Tem, so it shows all members. The other classes show only their own.
        whole = [described(f"{name}.{n}", "inherited_members: true") for n in ("Tem", "Mechanism")]
        first = "---\nsearch:\n  boost: 2\n---\n\n"  # before the papers' tables in a search
        return first + "\n\n".join(
            [f"# {name}", *whole, *(described(f"{name}.{n}") for n in inner)]
        )
    # Numbers and dates share most members.
    whole = "    options:\n      inherited_members: true\n" if name == "fastdx.numbers" else ""
    return f"# {name}\n\n::: {name}\n{whole}"


def described(name: str, *options: str) -> str:
    """Return one object with a heading."""
    chosen = ["show_root_heading: true", "show_root_full_path: false", "show_root_toc_entry: true"]
    return "\n".join([f"::: {name}", "    options:", *(f"      {x}" for x in (*chosen, *options))])


def command_page(parser: argparse.ArgumentParser) -> str:
    """Return the help of every command, with all of its options."""
    page = ["# Command", f"{parser.description}", ""]
    for command in commands(parser):
        command.formatter_class = _Help
        title = "#" * (1 + command.prog.count(" "))
        page += [f"{title} {command.prog}", "", "```text", command.format_help(), "```", ""]
    return "\n".join(page)


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield commands; sub-commands follow their command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from commands(command)


def format_page() -> str:
    """Return the specification of the file format, the first comment of the code that reads it."""
    lines = (ROOT / FORMAT).read_text("utf-8").splitlines()
    about = [x[3:].removeprefix(" ") for x in lines if x.startswith("//!")]
    return "# File format\n\n" + "\n".join(about) + f"\n\nFrom `{FORMAT.as_posix()}`.\n"


# --- mkdocs


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    # Classes written in Rust name the module that exports them as their home. Without this loop
    # griffe would follow aliases in a circle.
    for found in vars(_core).values():
        if isinstance(found, type) and found.__module__.startswith("fastdx"):
            found.__module__ = _core.__name__
    cargo = (ROOT / "Cargo.toml").read_text("utf-8")
    address = re.search(r'^repository = "(.+)"$', cargo, re.M)  # empty until the project has one
    config.repo_url = address[1] if address else None
    sections: dict[str, list[Any]] = {k: v for part in config.nav for k, v in part.items()}
    sections["Reference"].append({"Python": api_navigation()})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for source, place in INCLUDED.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    made = {
        "reference/cli.md": command_page(cli.parser()),
        "reference/file-format.md": format_page(),
    }
    for module in public_modules():
        made[f"{API}/{module}.md"] = api_page(module)
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = page.file.abs_src_path
    here = Path(source).resolve().relative_to(ROOT) if source else Path("docs") / page.file.src_uri
    # A link's words may go on in the next line.
    blocks = ((code, "\n".join(line for _, line in lines))
              for code, lines in groupby(lines_of(markdown), key=itemgetter(0)))  # fmt: skip
    text = "\n".join(
        block if code else LINK.sub(lambda m: linked(m, here, page.file.src_uri), block)
        for code, block in blocks
    )
    text = PICTURE.sub(lambda m: pictured(m, here, page.file.src_uri), text)
    if page.file.src_uri.startswith("research/"):
        # Tables name mechanisms often: the pages for users come first.
        page.meta.setdefault("search", {})["boost"] = 0.5
    text = re.sub(r" *# doctest:.*", "", text)  # for the tests, not for readers
    return re.sub(r"^```python\n(?=>>>)", "```pycon\n", text, flags=re.M)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Give each example with prompts the text that its copy button copies."""
    return PRE.sub(lambda block: copied(block.group()), output)


def copied(block: str) -> str:
    """Return a block of code; with prompts, it also gets its text without prompts and outputs."""
    if not PROMPT.search(block):
        return block
    kept = []
    for line in re.sub(r"</?code>|</?pre[^>]*>", "", block).strip("\n").split("\n"):
        # Lines without a prompt are output.
        if found := PROMPT.search(line):
            kept.append(html.unescape(TAG.sub("", line[found.end() :])))
    text = html.escape("\n".join(kept), quote=True).replace("\n", "&#10;")
    return block.replace("<pre", f'<pre data-copy="{text}"', 1)


def lines_of(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yield each line, and whether it is code."""
    fence = None
    for line in markdown.split("\n"):
        mark = FENCE.match(line)
        if mark and fence in (None, mark[2]):
            fence = mark[2] if fence is None else None
            yield True, line
        else:
            yield fence is not None, line


def pictured(picture: re.Match[str], here: Path, page: str) -> str:
    """Return both files of a picture: the theme shows the one of its colours."""
    place = posixpath.normpath(posixpath.join(here.parent.as_posix(), picture[2]))
    to = posixpath.relpath(place.removeprefix("docs/"), posixpath.dirname(page) or ".")
    return " ".join(f"![{picture[1]}]({to}-{s}.svg#only-{s})" for s in ("light", "dark"))


def linked(link: re.Match[str], here: Path, page: str) -> str:
    """Return a link of the repository as a link of the site, or as text if there is no page."""
    label, target = link.groups()
    path, _, anchor = target.partition("#")
    if ":" in path or not path:
        return link.group()
    wanted = posixpath.normpath(posixpath.join(here.parent.as_posix(), path))
    if not (ROOT / wanted).exists():
        return link.group()  # mkdocs complains
    place = INCLUDED.get(wanted)
    if wanted == FORMAT.as_posix():
        place = "reference/file-format.md"
    elif wanted.startswith("docs/") and not (ROOT / wanted).is_dir():
        place = wanted.removeprefix("docs/")
    if place is None:
        return label
    relative = posixpath.relpath(place, posixpath.dirname(page) or ".")
    return f"[{label}]({relative}{'#' + anchor if anchor else ''})"
