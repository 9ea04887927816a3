"""Checks that uses between files, and between folders, have no cycles.

    python tools/layers.py [ROOT]

The script looks at the core (`src/`), the service (`service/src/`), the Python package
(`python/fastdx/`), and the calls from the core back into Python. Each is a graph of files and, at
every depth, a graph of folders. A folder stands for all files in it.

In Rust an edge is every `use`, at the top or in a function, and every path that begins with
`crate`, `super` or `self`. Code that is compiled only for tests does not count. If a folder's head
(`mod.rs`, or the file with the folder's name) uses its own files, this is no edge. If they use the
head, this is an edge.

In Python an edge is every import, also in functions and under TYPE_CHECKING. A name imported from
the package itself counts for the file that defines it. The extension module `fastdx._core` is a
file like the others. It uses the modules that its stub imports, and each module of the package that
a string in `src/python/` names.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

Graph = dict[str, set[str]]

KNOWN: dict[str, tuple[frozenset[str], ...]] = {}
"""Known cycles that must be removed, as files by part. The list may only get shorter."""


# Graphs


def cycles(graph: Graph) -> list[list[str]]:
    """Return the sorted sets of at least two names that all reach each other."""
    reached = {name: _reach(graph, name) for name in graph}
    found = {
        frozenset({name} | {other for other in there if name in reached[other]})
        for name, there in reached.items()
        if name in there
    }
    return sorted(sorted(names) for names in found)


def _reach(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [*graph[start]]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += graph[name]
    return seen


def path_within(graph: Graph, names: Iterable[str]) -> list[str]:
    """Return a shortest cycle through names that all reach each other."""
    within = set(names)
    start = min(within)
    ways = [[start]]
    while True:
        way = ways.pop(0)
        for name in sorted(graph[way[-1]] & within):
            if name == start:
                return [*way, name]
            if name not in way:
                ways.append([*way, name])


def folders(graph: Graph, separator: str) -> Iterator[tuple[str, Graph]]:
    """Return the graph of the direct members of every folder; "" is the root."""
    inner = {
        separator.join(parts[:end])
        for parts in (name.split(separator) for name in graph)
        for end in range(len(parts))
    }
    for folder in sorted(inner):
        start = f"{folder}{separator}" if folder else ""
        of = {
            name: start + name.removeprefix(start).split(separator)[0]
            for name in graph
            if name.startswith(start)
        }
        made: Graph = {child: set() for child in of.values()}
        for name, child in of.items():
            made[child] |= {of[other] for other in graph[name] if other in of} - {child}
        yield folder, made


# Rust


def rust_modules(src: Path) -> dict[str, Path]:
    found = {}
    for path in src.rglob("*.rs"):
        parts = path.relative_to(src).with_suffix("").parts
        name = "::".join(p for p in parts if p != "mod")
        if name != "lib":
            found[name] = path
    return found


_RUST = re.compile(
    r"""(?P<comment>//[^\n]*|/\*)
      |(?P<string>b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*")
      |(?P<char>'(?:\\.[^']*|[^\\'])')""",
    re.S | re.X,
)


def code_and_strings(text: str) -> tuple[str, list[str]]:
    """Return the text without comments and strings, and each string with the text before it."""
    out: list[str] = []
    strings: list[str] = []
    at = 0
    while match := _RUST.search(text, at):
        before = text[at : match.start()]
        out.append(before)
        at = match.end()
        if match["string"]:
            strings.append(before[-40:] + match["string"])
            out.append('""')
        elif match["char"]:
            out.append("' '")
        elif match["comment"] == "/*":
            depth = 1
            while depth and (mark := re.compile(r"/\*|\*/").search(text, at)):
                depth += 1 if mark[0] == "/*" else -1
                at = mark.end()
    out.append(text[at:])
    return "".join(out), strings


def without_tests(code: str) -> str:
    """Return code without the items that are compiled only for tests."""
    while match := re.search(r"#\[cfg\(test\)\]", code):
        end = re.compile(r"[;{]").search(code, match.end())
        stop = end.end() if end else len(code)
        if end and end[0] == "{":
            depth = 1
            while depth and (mark := re.compile(r"[{}]").search(code, stop)):
                depth += 1 if mark[0] == "{" else -1
                stop = mark.end()
        code = code[: match.start()] + code[stop:]
    return code


def expanded(use: str) -> list[str]:
    """Yield the paths of a use declaration, with braces expanded."""
    match = re.match(r"^(.*?)\{(.*)\}$", use, re.S)
    if not match:
        return [use.split(" as ", maxsplit=1)[0].strip()]
    prefix, inner = match.groups()
    parts, depth, start = [], 0, 0
    for i, c in enumerate(inner):
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 0:
            parts.append(inner[start:i])
            start = i + 1
    parts.append(inner[start:])
    return [path for p in parts if p.strip() for path in expanded(prefix + p.strip())]


def reexports(lib: Path) -> dict[str, str]:
    """Return the names that lib.rs re-exports, with the module of each."""
    names = {}
    text = code_and_strings(lib.read_text("utf-8"))[0] if lib.exists() else ""
    for use in re.findall(r"\bpub(?:\([^)]*\))? use ([^;]+);", text):
        for path in expanded(re.sub(r"\s+", " ", use)):
            module, _, name = path.removeprefix("crate::").rpartition("::")
            names[name] = module
    return names


def rust_graph(src: Path, crate: str = "crate") -> Graph:
    """Return the graph of uses; `crate` is a binary's name for the library."""
    modules = rust_modules(src)
    roots = reexports(src / "lib.rs")
    graph: Graph = {name: set() for name in modules}
    for name, file in modules.items():
        code = without_tests(code_and_strings(file.read_text("utf-8"))[0])
        code = re.sub(r"\bpub\s*\([^)]*\)", "pub", code)
        uses = re.findall(r"\buse ([^;]+);", code)
        paths = [p for use in uses for p in expanded(re.sub(r"\s+", " ", use))]
        paths += re.findall(rf"(?<![\w:])(?:crate|{crate}|super|self)::[\w:]+", code)
        for path in paths:
            target = absolute(path, name, crate, roots)
            found = owner(target, modules)
            # A folder's head may name its files; this is no import.
            if found and found != name and not found.startswith(f"{name}::"):
                graph[name].add(found)
    return graph


def absolute(path: str, here: str, crate: str, roots: dict[str, str]) -> str:
    """Return a path as one from the root of its crate."""
    first, _, rest = path.partition("::")
    # `self` is the module a both in `a/mod.rs` and in `a.rs`.
    base = here.split("::")
    if first in ("crate", crate):
        name = rest.split("::")[0]
        return f"{roots[name]}::{rest}" if name in roots else rest
    while first in ("super", "self"):
        base = base[:-1] if first == "super" else base
        first, _, rest = rest.partition("::")
    return "::".join([*base, first, rest]).removesuffix("::")


def owner(path: str, modules: dict[str, Path]) -> str | None:
    """Return the module with which a path begins."""
    parts = path.split("::")
    for end in range(len(parts), 0, -1):
        if "::".join(parts[:end]) in modules:
            return "::".join(parts[:end])
    return None


# Python


def python_modules(folder: Path) -> dict[str, Path]:
    names = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        names[".".join(p for p in parts if p != "__init__")] = path
    return names


def imports(tree: ast.AST, name: str, package: str) -> Iterator[str]:
    """Yield the dotted names that a file imports: modules, or names in modules."""
    calls = ("import_module", "__import__", "find_spec")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1]
            module = ".".join([*up * bool(node.level), *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            # `import fastdx`, then `fastdx.Tem`.
            if node.value.id == "fastdx":
                yield f"fastdx.{node.attr}"
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", None))
            given = node.args[0]
            if called in calls and isinstance(given, ast.Constant):
                asked = str(given.value)
                yield f"{package}{asked}" if asked.startswith(".") else asked


def offered(tree: ast.Module) -> dict[str, str]:
    """Return the names that the package exports, with the module of each."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.update((alias.asname or alias.name, node.module) for alias in node.names)
        elif isinstance(node, ast.Assign):
            lazy = [getattr(target, "id", None) for target in node.targets] == ["_LAZY"]
            names.update(ast.literal_eval(node.value) if lazy else {})
    return names


def python_graph(root: Path) -> Graph:
    folder = root / "python" / "fastdx"
    modules = python_modules(folder)
    core = "fastdx._core"
    graph: Graph = {name: set() for name in (*modules, core)}
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in modules.items()}
    roots = offered(trees["fastdx"]) if "fastdx" in trees else {}

    def add(name: str, asked: str) -> None:
        """Return the module that `asked` names, or that contains the name `asked`."""
        _, _, rest = asked.partition("fastdx.")
        first = rest.split(".")[0]
        if f"fastdx.{first}" not in graph and first in roots:
            asked = f"{roots[first]}.{first}"
        while asked and asked not in graph:
            asked = asked.rpartition(".")[0]
        # The package itself stands for its files.
        if asked not in ("", "fastdx", name):
            graph[name].add(asked)

    for name, tree in trees.items():
        if name == "fastdx":
            continue
        package = name if modules[name].name == "__init__.py" else name.rpartition(".")[0]
        for asked in imports(tree, name, package):
            add(name, asked)
    for asked in called_back(root / "src" / "python"):
        add(core, asked)
    stub = folder / "_core.pyi"
    if stub.exists():
        for asked in imports(ast.parse(stub.read_text("utf-8")), core, "fastdx"):
            add(core, asked)
    return graph


def called_back(face: Path) -> Iterator[str]:
    """Return the modules of the package that strings in `src/python/` name."""
    for path in sorted(face.rglob("*.rs")):
        for string in code_and_strings(path.read_text("utf-8"))[1]:
            before, _, literal = string.partition('"')
            text = literal.rstrip('#"')
            # The `module` attribute of a class is no import.
            if re.fullmatch(r"fastdx(\.\w+)+", text) and not before.endswith("module = "):
                yield text
            for found in re.finditer(r"\bimport (fastdx\.[\w.]+)", text):
                yield found[1]
            for found in re.finditer(r"\bfrom (fastdx[\w.]*) import (\w+)", text):
                yield f"{found[1]}.{found[2]}"


# All of it


def faults(part: str, graph: Graph, separator: str) -> Iterator[str]:
    """Print every unknown cycle of files or folders, and every known one that is gone."""
    known = KNOWN.get(part, ())
    left = {name for names in known for name in names}
    kinds = [("files", "", graph)]
    kinds += [("folders", folder, inner) for folder, inner in folders(graph, separator)]
    said: set[frozenset[str]] = set()
    for kind, folder, inner in kinds:
        for names in cycles(inner):
            way = " -> ".join(path_within(inner, names))
            if frozenset(names) in said:
                continue
            said.add(frozenset(names))
            if any(names_known >= set(names) for names_known in known):
                left -= set(names)
                print(f"{part}: KNOWN CYCLE, still there: {way}", file=sys.stderr)
                continue
            where = f" in {folder}" if folder else ""
            edges = [
                f"    {a} uses {b}"
                for a in sorted(graph)
                for b in sorted(graph[a])
                if kind == "folders" and _crosses(a, b, names, separator)
            ]
            yield "\n".join([f"{part}: a cycle of {kind}{where}: {way}", *edges])
    if left:
        yield f"{part}: no longer in a cycle, take them off KNOWN: {', '.join(sorted(left))}"


def _crosses(a: str, b: str, names: list[str], separator: str) -> bool:
    """Return whether an edge of files connects two of these folders."""

    def within(file: str) -> str | None:
        found = [n for n in names if file == n or file.startswith(f"{n}{separator}")]
        return found[0] if found else None

    return None not in (within(a), within(b)) and within(a) != within(b)


def main(root: Path = ROOT) -> int:
    parts = [
        ("core", rust_graph(root / "src"), "::"),
        ("service", rust_graph(root / "service" / "src", "fastdx_serve"), "::"),
        ("package", python_graph(root), "."),
    ]
    wrong = False
    for part, graph, separator in parts:
        found = list(faults(part, graph, separator))
        wrong = wrong or bool(found)
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        if not found:
            print(f"{part}: {len(graph)} files, no cycle but those that are known")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
