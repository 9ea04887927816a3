"""tools/layers.py: a cycle of every kind, planted in a small tree, is found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from helpers import ROOT

TOOL = ROOT / "tools" / "layers.py"
SOUND = {
    "src/lib.rs": "pub mod high;\nmod low;\npub use low::one::Word;\n",
    "src/low/mod.rs": "pub mod one;\npub mod two;\nuse one::Word;\n",
    # Code of tests, comments, strings and names in a path do not count.
    "src/low/one.rs": 'pub struct Word;\n// use crate::high;\nconst S: &str = "use crate::high;";\n'
    "#[cfg(test)]\nmod tests {\n    use crate::high::at;\n    fn a() { at() }\n}\n",
    "src/low/two.rs": "use super::one::Word;\npub(in crate::high) fn two() -> Word { Word }\n",
    "src/high/mod.rs": "use crate::low::{one::{self}, two};\nuse crate::Word;\npub fn at() {}\n",
    "src/python/mod.rs": 'py.import("json"); #[pyclass(module = "fastdx.low")] fn f() {}\n',
    "service/src/lib.rs": "pub mod main_loop;\npub mod reply;\n",
    "service/src/main_loop.rs": "use crate::reply::Reply;\n",
    "service/src/reply.rs": "use fastdx::low;\npub struct Reply;\n",
    "service/src/main.rs": "use fastdx_serve::main_loop;\n",
    "python/fastdx/__init__.py": "from fastdx.high import High\n_LAZY = {'late': 'fastdx.late'}\n",
    "python/fastdx/low.py": "from fastdx._core import Core\n",
    "python/fastdx/high.py": "from fastdx.low import Low\n",
    "python/fastdx/late.py": "from fastdx import High\n",
    "python/fastdx/rooms/__init__.py": "from fastdx.rooms.first import A\n",
    "python/fastdx/rooms/first.py": "import fastdx.low\n",
    "python/fastdx/rooms/second.py": "from .first import A\n",
    "python/fastdx/_core.pyi": "from typing import Any\n",
}


def tool(known: dict[str, tuple[frozenset[str], ...]]) -> ModuleType:
    spec = importlib.util.spec_from_file_location("layers", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.KNOWN = known
    return module


def planted(root: Path, changes: dict[str, str]) -> Path:
    """A sound tree, with something added to some files."""
    for name, text in {**SOUND, **{n: SOUND.get(n, "") + t for n, t in changes.items()}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def test_a_sound_tree_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool({}).main(planted(tmp_path, {})) == 0
    assert "a cycle" not in capsys.readouterr().err


CYCLES = {
    "Rust files": (
        {"src/low/one.rs": "use super::two;\n"},
        "core: a cycle of files: low::one -> low::two -> low::one",
    ),
    "Rust, in a function": (
        {"src/low/one.rs": "fn f() {\n    use crate::low::two;\n}\n"},
        "core: a cycle of files: low::one -> low::two -> low::one",
    ),
    "Rust, by a path": (
        {"src/low/one.rs": "fn f() -> super::two::Two { g() }\n"},
        "core: a cycle of files: low::one -> low::two -> low::one",
    ),
    "Rust, by a name of the root": (
        {"src/low/two.rs": "", "src/lib.rs": "pub use high::at;\n",
         "src/low/one.rs": "use crate::at;\n"},
        "core: a cycle of files: high -> low::one -> high",
    ),
    "Rust folders whose files are sound": (
        {"src/high/base.rs": "pub struct Base;\n", "src/low/three.rs": "use crate::high::base;\n"},
        "core: a cycle of folders: high -> low -> high",
    ),
    "Rust folders within a folder": (
        {"src/low/a/x.rs": "use crate::low::b::x;\n", "src/low/b/x.rs": "",
         "src/low/b/y.rs": "use super::super::a::y;\n", "src/low/a/y.rs": ""},
        "core: a cycle of folders in low: low::a -> low::b -> low::a",
    ),
    "the service": (
        {"service/src/reply.rs": "use crate::main_loop;\n"},
        "service: a cycle of files: main_loop -> reply -> main_loop",
    ),
    "the service's binary": (
        {"service/src/reply.rs": "mod main { use crate::main; }\n",
         "service/src/main.rs": "use fastdx_serve::reply;\n"},
        "service: a cycle of files: main -> reply -> main",
    ),
    "Python files": (
        {"python/fastdx/low.py": "from fastdx.high import High\n"},
        "package: a cycle of files: fastdx.high -> fastdx.low -> fastdx.high",
    ),
    "Python, for types": (
        {"python/fastdx/low.py": "if TYPE_CHECKING:\n    from fastdx.high import High\n"},
        "package: a cycle of files: fastdx.high -> fastdx.low -> fastdx.high",
    ),
    "Python, in a function": (
        {"python/fastdx/low.py": "def f():\n    from fastdx import high\n"},
        "package: a cycle of files: fastdx.high -> fastdx.low -> fastdx.high",
    ),
    "Python, by name": (
        {"python/fastdx/low.py": "m = import_module('fastdx.high')\n"},
        "package: a cycle of files: fastdx.high -> fastdx.low -> fastdx.high",
    ),
    "Python, by a late name of the package": (
        {"python/fastdx/high.py": "import fastdx\nx = fastdx.late\n"},
        "package: a cycle of files: fastdx.high -> fastdx.late -> fastdx.high",
    ),
    "Python, relative": (
        {"python/fastdx/rooms/first.py": "from . import second\n"},
        "package: a cycle of files: fastdx.rooms.first -> fastdx.rooms.second",
    ),
    "Python folders whose files are sound": (
        {"python/fastdx/low.py": "from fastdx.rooms.third import C\n",
         "python/fastdx/rooms/third.py": ""},
        "package: a cycle of folders in fastdx: fastdx.low -> fastdx.rooms -> fastdx.low",
    ),
    "from Rust into Python": (
        {"src/python/mod.rs": 'py.import("fastdx.low")?;\n'},
        "package: a cycle of files: fastdx._core -> fastdx.low -> fastdx._core",
    ),
    "from Rust into Python, as a program": (
        {"src/python/mod.rs": 'py.run(c"from fastdx.low import Low")?;\n'},
        "package: a cycle of files: fastdx._core -> fastdx.low -> fastdx._core",
    ),
    "the stub": (
        {"python/fastdx/_core.pyi": "from fastdx.low import Low\n"},
        "package: a cycle of files: fastdx._core -> fastdx.low -> fastdx._core",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CYCLES)
def test_a_cycle_is_found(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes, expected = CYCLES[kind]
    assert tool({}).main(planted(tmp_path, changes)) == 1
    assert expected in capsys.readouterr().err


def test_known_cycles_are_printed_and_new_ones_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"service": (frozenset({"main_loop", "reply"}),)}
    root = planted(tmp_path, {"service/src/reply.rs": "use crate::main_loop;\n"})
    assert tool(known).main(root) == 0
    assert "KNOWN CYCLE" in capsys.readouterr().err
    planted(tmp_path, {"service/src/reply.rs": "use crate::{main_loop, main};\n"})
    assert tool(known).main(root) == 1


def test_what_is_mended_must_leave_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"service": (frozenset({"main_loop", "reply"}),)}
    assert tool(known).main(planted(tmp_path, {})) == 1
    assert "take them off KNOWN: main_loop, reply" in capsys.readouterr().err


def test_the_project_has_no_cycle() -> None:
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
