"""No file imports what stands above it: fails on circles of imports among the core's files.

    python tools/layers.py

Reads `use` lines and paths of Rust's core (all but `src/python/`), of its Python face, and the
imports of the Python package, as text. Declaring a module is no import; tests do not count.
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def rust_modules(folder: Path) -> dict[str, Path]:
    found = {}
    for path in folder.rglob("*.rs"):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        name = "::".join(p for p in parts if p != "mod")
        if name != "lib":
            found[name] = path
    return found


def owner(path: str, modules: dict[str, Path]) -> str | None:
    """The module that a path begins with."""
    parts = path.split("::")
    for end in range(len(parts), 0, -1):
        if "::".join(parts[:end]) in modules:
            return "::".join(parts[:end])
    return None


def reexports() -> dict[str, str]:
    """What lib.rs offers at the root, and where it comes from."""
    text = (ROOT / "src" / "lib.rs").read_text("utf-8")
    names = {}
    for path, last in re.findall(r"^pub use ([\w:]+)::(\w+|\{[^}]*\});", text, re.M):
        for name in re.findall(r"\w+", last):
            names[name] = path
    return names


def expanded(use: str) -> list[str]:
    """The paths of a use declaration, braces multiplied out."""
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


def rust_graph() -> dict[str, set[str]]:
    modules = rust_modules(ROOT / "src")
    roots = reexports()
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        text = path.read_text("utf-8").split("#[cfg(test)]\nmod tests")[0]
        text = re.sub(r"//.*", "", text)
        # `pub use` of a folder's own files is its table of contents.
        uses = re.findall(r"^\s*use ([^;]+);", text, re.M)
        paths = [p for use in uses for p in expanded(re.sub(r"\s+", " ", use))]
        paths += re.findall(r"\bcrate::[\w:]+", text)
        here = name.split("::")
        for full in paths:
            base = here if path.name == "mod.rs" else here[:-1]
            target = full.strip()
            if target.startswith("crate::"):
                target = target.removeprefix("crate::")
                first = target.split("::")[0]
                target = f"{roots[first]}::{target}" if first in roots else target
            elif target.startswith("super::"):
                up = base[:-1] if path.name == "mod.rs" else base
                while target.startswith("super::"):
                    target = target.removeprefix("super::")
                    base, up = up, up[:-1]
                target = "::".join([*base, target])
            else:
                target = "::".join([*here, target])
            found = owner(target, modules)
            # A file may use its own folder's head and that the files it declares.
            if found and found != name:
                graph[name].add(found)
    # A folder's head lists its files, which is no import.
    return {
        name: {t for t in targets if not t.startswith(f"{name}::")}
        for name, targets in graph.items()
    }


def python_graph() -> dict[str, set[str]]:
    folder = ROOT / "python" / "fastdx"
    names = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        names[".".join(p for p in parts if p != "__init__")] = path
    graph: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        text = path.read_text("utf-8").split("if TYPE_CHECKING:")[0]
        for module, what in re.findall(
            r"^from (fastdx[\w.]*) import ((?:\([^)]*\))|.*)$", text, re.M
        ):
            for item in re.findall(r"\w+", what):
                target = f"{module}.{item}" if f"{module}.{item}" in names else module
                # The package itself is what its files make up.
                if target in names and target not in ("fastdx", name):
                    graph[name].add(target)
    return graph


def main() -> int:
    wrong = False
    for language, graph in (("Rust", rust_graph()), ("Python", python_graph())):
        try:
            order = list(TopologicalSorter(graph).static_order())
            print(f"{language}: {len(order)} files, no circle")
        except CycleError as e:
            wrong = True
            print(f"{language}: a circle of imports: {' -> '.join(e.args[1])}", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
