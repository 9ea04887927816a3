"""Links between the documents, the checker of the built site, and what documents must agree on."""

from __future__ import annotations

import html
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fastdx
from fastdx import cli
from helpers import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from check_site import faults

LECTURES = sorted(ROOT.glob("src/**/README.md"))
DOCUMENTS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *LECTURES})
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def prose(text: str) -> str:
    """Markdown without its code."""
    text = re.sub(r"^ *(```|~~~).*?^ *\1", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(document: Path) -> set[str]:
    """The anchors of headings on GitHub and on the site."""
    text = re.sub(r"^ *(```|~~~).*?^ *\1", "", document.read_text("utf-8"), flags=re.M | re.S)
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", text, flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        found.add(name)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(prose(document.read_text("utf-8"))):
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", path):
            assert path.startswith(("https://", "mailto:")), target
            continue
        there = (document.parent / path).resolve() if path else document
        assert there.exists(), f"{document.name} links to {target}, which is not there"
        assert there.is_relative_to(ROOT), target
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{document.name}: {target} has no such heading"


RUST_NAME = re.compile(r"`([A-Za-z_]\w*(?:::\w+)*)`")


def defined(name: str, code: str) -> bool:
    """Whether Rust code defines NAME, or NAME of TYPE for TYPE::NAME; fields count too."""
    *owner, last = name.split("::")
    keywords = "fn|struct|enum|trait|type|const|static|mod"
    found = re.search(rf"\b(?:{keywords}) {last}\b|^ *(?:pub(?:\(.+?\))? )?{last}:", code, re.M)
    held = rf"\b(?:struct|enum|trait|impl(?:<.*?>)?) (?:\w+ for )?{owner[-1]}\b" if owner else ""
    return bool(found and re.search(held, code))


def lost_names(lecture: str, folder: Path) -> list[str]:
    """Names in a lecture that the files it links to beside them, or at all, do not define."""

    def linked(text: str) -> list[str]:
        paths = [folder / path for path in LINK.findall(text) if path.endswith(".rs")]
        return [path.read_text("utf-8") for path in paths]

    lecture = re.sub(r"^```.*?^```", "", lecture, flags=re.M | re.S)
    everywhere = linked(lecture)
    return [
        name
        for paragraph in re.split(r"\n\n|\n(?=- )", lecture)
        for name in RUST_NAME.findall(paragraph)
        if not any(defined(name, code) for code in linked(paragraph) or everywhere)
    ]


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda p: p.parent.name)
def test_lectures_name_what_the_code_has(lecture: Path) -> None:
    text = lecture.read_text("utf-8")
    assert len(RUST_NAME.findall(text)) > 20
    assert lost_names(text, lecture.parent) == []


def test_a_lost_name_is_found(tmp_path: Path) -> None:
    code = "pub(super) struct A {\n    pub(super) seen: u64,\n}\nimpl<T> A {\n    fn fill() {}\n}\n"
    (tmp_path / "a.rs").write_text(code)
    (tmp_path / "b.rs").write_text("// A, fill and seen are elsewhere\nuse a::A;\nfn other() {}\n")
    good = "[a](a.rs): `A::fill`, `A::seen`, `A`\n\n`fill` and `other`\n\n[b](b.rs) has `other`\n"
    assert lost_names(good, tmp_path) == []
    bad = "[a](a.rs) has `A::fall`, `other`\n\n[b](b.rs) has `fill`, `A`\n\n`lost`, `B::fill`\n"
    names = ["A::fall", "other", "fill", "A", "lost", "B::fill"]
    assert lost_names(bad, tmp_path) == names


IN_TREE = "src|python|tests|tools|examples|benches|experiments|service|data|docs|fuzz"
MODULES = "attacks|audit|calibration|counts|evaluation|hyperbolic|laws|noise|poincare"


def stale_names(text: str) -> list[str]:
    """Files and Python names in the code of sentences that the repository does not have."""
    # A block of figures names the command of its day.
    text = re.sub(r"<!-- figures .*?<!-- end of figures -->", "", text, flags=re.S)
    text = re.sub(r"^ *(```|~~~).*?^ *\1", "", text, flags=re.M | re.S)
    found = []
    for span in re.findall(r"`([^`\n]+)`", text):
        path = re.match(rf"(?:python )?((?:{IN_TREE})/[\w./-]+)", span)
        if path and "NAME" not in span and not (ROOT / path[1]).exists():
            found.append(path[1])
        name = re.match(rf"(?:fastdx\.)?({MODULES})\.(?!py\b|rs\b)(\w+)", span)
        if name and not hasattr(importlib.import_module(f"fastdx.{name[1]}"), name[2]):
            found.append(name[0])
    return found


# The changelog names what was.
@pytest.mark.parametrize(
    "document",
    [d for d in DOCUMENTS if d.name != "CHANGELOG.md"],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_names_in_sentences_are_not_stale(document: Path) -> None:
    assert stale_names(document.read_text("utf-8")) == []


def test_stale_names_are_found() -> None:
    good = "`src/law.rs`, `python tools/figures.py F`, `audit.certify`, `src/mechanism/NAME.rs`"
    assert stale_names(good) == []
    bad = "`src/lost.rs`, `python examples/lost.py`, `audit.lost(tem)`, `fastdx.laws.lost`"
    assert stale_names(bad) == ["src/lost.rs", "examples/lost.py", "audit.lost", "fastdx.laws.lost"]


def test_the_documents_were_found() -> None:
    names = {str(p.relative_to(ROOT)) for p in DOCUMENTS}
    assert {"README.md", "LIMITATIONS.md", "docs/guide.md", "docs/start/tutorial.md"} <= names
    assert "what-it-is" in anchors_of("# What *it* `is`")


def anchors_of(text: str) -> set[str]:
    class Fake:
        @staticmethod
        def read_text(_: str) -> str:
            return text

    return anchors(Fake())  # type: ignore[arg-type]


def test_a_good_site_passes_and_each_fault_is_found(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("@import 'more.css'; p { background: url(data:,x) }")
    (tmp_path / "more.css").write_text("")
    page = tmp_path / "index.html"
    good = (
        '<link rel="stylesheet" href="style.css"><link rel="canonical" href="https://x.org/">'
        '<h1 id="top">A</h1><a href="#top">up</a><a href="https://x.org/">away</a>'
        '<a href="/index.html#top">here</a>'
    )
    page.write_text(good)
    assert list(faults(tmp_path)) == []
    for bad, said in {
        '<script src="https://x.org/a.js"></script>': "is elsewhere",
        '<script src="//x.org/a.js"></script>': "is elsewhere",
        '<link rel="preconnect" href="https://fonts.gstatic.com">': "is elsewhere",
        '<img src="http://x.org/a.png">': "is elsewhere",
        '<img srcset="style.css 1x, https://x.org/b.png 2x">': "is elsewhere",
        "<style>@import 'https://x.org/a.css';</style>": "is elsewhere",
        '<p style="background: url(https://x.org/a.png)">': "is elsewhere",
        '<img src="lost.png">': "is not there",
        '<a href="lost.html">': "is not there",
        '<a href="../outside.html">': "is not there",
        '<a href="#lost">': "has no such place",
        '<a href="index.html#lost">': "has no such place",
    }.items():
        page.write_text(good + bad)
        found = list(faults(tmp_path))
        assert len(found) == 1 and said in found[0], (bad, found)
    page.write_text(good)
    (tmp_path / "more.css").write_text("@font-face { src: url('https://x.org/f.woff2') }")
    assert [f.endswith("is elsewhere") for f in faults(tmp_path)] == [True]


def test_the_checker_as_a_command(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "check_site.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no page" in done.stderr
    (tmp_path / "index.html").write_text("<p>nothing")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def site_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "tools" / "site_pages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_exported_name_has_its_page() -> None:
    made = site_pages()
    shown = set()
    for module in made.public_modules():
        page = made.api_page(module)
        for name in re.findall(r"^::: ([\w.]+)$", page, re.M):
            shown.add(name.rpartition(".")[2])
            # Engines' modules need their engines.
            if name == module and name.rpartition(".")[2] in {*fastdx.__all__, "exceptions"}:
                shown |= set(importlib.import_module(module).__all__)
    assert {n for n in fastdx.__all__ if not n.startswith("_")} - {"mechanisms"} <= shown


def test_every_module_has_its_page_and_tem_comes_first() -> None:
    made = site_pages()
    *own, engines = made.api_navigation()
    names = [name for entry in own for name in entry]
    assert names[:2] == ["fastdx.mechanisms", "fastdx"]
    assert {"fastdx.evaluation", "fastdx.client", "fastdx.columns"} <= set(names)
    assert [name for entry in engines["Engines"] for name in entry] == [
        f"fastdx.{p.stem}" for p in sorted((ROOT / "docs" / "engines").glob("*.md"))
    ]
    mechanisms = re.findall(r"^::: ([\w.]+)$", made.api_page("fastdx.mechanisms"), re.M)
    assert mechanisms[0] == "fastdx.mechanisms.Tem" and len(set(mechanisms)) == len(mechanisms)


def test_the_copy_button_leaves_out_prompts_and_outputs() -> None:
    made = site_pages()
    prompt = '<span class="gp">&gt;&gt;&gt; </span>'
    more = '<span class="gp">... </span>'
    block = (
        f'<pre><span></span><code><a id="x"></a>{prompt}<span class="k">if</span> "a" &lt; b:\n'
        f'<a id="y"></a>{more}    f()\n'
        '<a id="z"></a><span class="go">&gt; output</span>\n'
        f"{prompt}g()\n</code></pre>"
    )
    page = f"<p>&gt;&gt;&gt;</p>{block}<pre><code>plain $ x\n</code></pre>"
    shown = made.on_post_page(page, page=None, config=None)
    (copied,) = re.findall(r'data-copy="([^"]*)"', shown)
    assert html.unescape(copied) == 'if "a" < b:\n    f()\ng()'
    assert re.sub(r' data-copy="[^"]*"', "", shown) == page


def test_the_page_of_the_command_has_every_option() -> None:
    made = site_pages()
    parser = cli.parser()
    page = made.command_page(parser)
    names = [title for title, *_ in made.commands(parser)]
    assert {"fastdx privatize", "fastdx index check"} <= set(names)
    for title, command, _ in made.commands(parser):
        assert re.search(rf"^#+ {title}$", page, re.M)
        for option in re.findall(r"--[a-z][\w-]+", command.format_usage()):
            assert option in page


def commands_of(document: Path) -> list[str]:
    """The lines of shell examples that call fastdx, without comments and redirections."""
    blocks = re.findall(r"^```sh\n(.*?)^```", document.read_text("utf-8"), flags=re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [re.split(r"[<>|#]", line)[0] for line in lines if line.startswith("fastdx ")]


def test_the_commands_of_the_documents_are_commands() -> None:
    parser = cli.parser()
    lines = [line for document in DOCUMENTS for line in commands_of(document)]
    assert len(lines) > 10
    for line in lines:
        try:
            parser.parse_args(shlex.split(line)[1:])
        except SystemExit:
            raise AssertionError(f"no command: {line}") from None


def test_commands_in_sentences_have_these_options() -> None:
    page = site_pages().command_page(cli.parser())
    for document in DOCUMENTS:
        for part in re.findall(r"`(fastdx [a-z]+[^`]*)`", document.read_text("utf-8")):
            assert f"fastdx {part.split()[1]}" in page, f"{document.name}: {part}"
            for option in re.findall(r"--[a-z][\w-]+", part):
                assert option in page or option == "--help", f"{document.name}: {part}"


def test_links_on_the_site() -> None:
    made = site_pages()

    def linked(markdown: str, source: str, page: str) -> str:
        return made.LINK.sub(lambda m: made.linked(m, Path(source), page), markdown)

    guide = "[g](docs/guide.md#noise)"
    assert linked(guide, "README.md", "index.md") == "[g](guide.md#noise)"
    assert linked("[l](../LIMITATIONS.md)", "docs/guide.md", "guide.md") == (
        "[l](reference/limitations.md)"
    )
    assert linked("[n](NOTICE)", "README.md", "index.md") == "n"
    for kept in ("[x](https://x.org/a)", "[h](#here)", "[l](lost.md)"):
        assert linked(kept, "README.md", "index.md") == kept
