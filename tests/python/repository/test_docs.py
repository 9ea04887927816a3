"""Names, files and commands in documents are those of the code. `make site` checks links."""

import importlib
import pkgutil
import re
import shlex
import textwrap
from pathlib import Path

import pytest
from tools import site_pages

import fastdx
from fastdx import cli
from fastdx.cli import policies
from helpers import ROOT
from helpers.policies import weak

LECTURES = sorted(ROOT.glob("src/**/README.md"))
DOCUMENTS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *LECTURES})
TABLES = [*ROOT.glob("examples/*.toml"), *ROOT.glob("service/*.toml"), *DOCUMENTS]
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


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


IN_TREE = "src|python|tests|tools|examples|benches|experiments|service|data|docs|fuzz"
OTHERS = {"_core", "cli", "channel", "engines", "lab"}  # files, and variables of examples
FOUND = {m.name for m in pkgutil.iter_modules(fastdx.__path__)}
ROOMS = {m.removeprefix("fastdx.") for m in site_pages.public_modules() if m.count(".") == 2}
MODULES = "|".join({*FOUND - OTHERS, *ROOMS})


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


def test_every_exported_name_has_its_page() -> None:
    shown = set()
    for module in site_pages.public_modules():
        page = site_pages.api_page(module)
        for name in re.findall(r"^::: ([\w.]+)$", page, re.M):
            shown.add(name.rpartition(".")[2])
            if name in ("fastdx.bags", "fastdx.exceptions"):
                shown |= set(importlib.import_module(module).__all__)
    assert {n for n in fastdx.__all__ if not n.startswith("_")} - {"mechanisms"} <= shown


def commands_of(document: Path) -> list[str]:
    """The lines of shell examples that call fastdx, without comments and redirections."""
    blocks = re.findall(r"^```sh\n(.*?)^```", document.read_text("utf-8"), flags=re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [re.split(r"\d?>|[<|#]", line)[0] for line in lines if line.startswith("fastdx ")]


def test_the_commands_of_the_documents_are_commands() -> None:
    """And where many words come back under one, the document says so."""
    parser, count = cli.parser(), 0
    for document in DOCUMENTS:
        for line in commands_of(document):
            try:
                args = parser.parse_args(shlex.split(line)[1:])
            except SystemExit:
                raise AssertionError(f"no command: {line}") from None
            count += 1
            assert not weak(args) or "come back" in document.read_text("utf-8"), line
    assert count > 10


@pytest.mark.parametrize("file", TABLES, ids=lambda p: str(p.relative_to(ROOT)))
def test_policies_that_are_shown_can_be_had(file: Path, tmp_path: Path) -> None:
    """And where many words come back under one, the file says so."""
    text = file.read_text("utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    for block in [text] if file.suffix == ".toml" else blocks:
        if "[policies." not in block:
            continue
        # Its files are not there. The service's own tables are not about mechanisms.
        shown = re.sub(r"^(index|warm|exclude) = .*\n", "", textwrap.dedent(block), flags=re.M)
        (tmp_path / "policies.toml").write_text(shown, "utf-8")
        try:
            made = policies.mechanisms(str(tmp_path / "policies.toml"))
        except fastdx.FastdxError as e:
            assert "neither default nor policies" in str(e), e
            continue
        for name, mechanism in made.items():
            assert mechanism.unchanged.warning is None or "come back" in text, name


def test_commands_in_sentences_have_these_options() -> None:
    page = site_pages.command_page(cli.parser())
    for document in DOCUMENTS:
        for part in re.findall(r"`(fastdx [a-z]+[^`]*)`", document.read_text("utf-8")):
            assert f"fastdx {part.split()[1]}" in page, f"{document.name}: {part}"
            for option in re.findall(r"--[a-z][\w-]+", part):
                assert option in page or option.startswith("--help"), f"{document.name}: {part}"


def test_the_first_code_of_readme_is_the_one_whose_output_it_shows() -> None:
    code = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    assert code is not None
    assert code[1] == (ROOT / "examples" / "first.py").read_text("utf-8")
