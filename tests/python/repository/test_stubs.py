"""The stub of the extension says the defaults that its functions really have.

stubtest compares a default only where the stub writes one: `= ...` passes. Here every default is
written, and equal to the one in the signature. `...` is right where Rust computes the default.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastdx import _core
from helpers import ROOT

Function = ast.FunctionDef
STUB = ast.parse((ROOT / "python" / "fastdx" / "_core.pyi").read_text("utf-8"))


def functions(stub: ast.Module) -> Iterator[tuple[str, Function, Any]]:
    """Each function and method of the stub with what it is at run time."""
    for node in stub.body:
        if isinstance(node, Function):
            yield node.name, node, getattr(_core, node.name)
        elif isinstance(node, ast.ClassDef) and hasattr(_core, node.name):
            made = getattr(_core, node.name)
            for inner in node.body:
                if not isinstance(inner, Function) or "property" in decorators(inner):
                    continue
                found = made if inner.name == "__new__" else getattr(made, inner.name, None)
                yield f"{node.name}.{inner.name}", inner, found


def decorators(node: Function) -> set[str]:
    return {one.id for one in node.decorator_list if isinstance(one, ast.Name)}


def written(node: Function) -> dict[str, Any]:
    """The defaults in the stub, by parameter; `...` for itself."""
    places = [*node.args.posonlyargs, *node.args.args]
    last = places[len(places) - len(node.args.defaults) :]
    pairs = [*zip(last, node.args.defaults, strict=True),
             *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]  # fmt: skip
    return {name.arg: ast.literal_eval(value) for name, value in pairs if value is not None}


def faults(name: str, node: Function, found: Callable[..., Any]) -> list[str]:
    """How the defaults of a stub differ from those of the function, a sentence each."""
    signature = inspect.signature(found).parameters
    real = {p.name: p.default for p in signature.values() if p.default is not p.empty}
    said = written(node)
    if "overload" in decorators(node):  # each has some of them
        real = {key: value for key, value in real.items() if key in said}
    differ = [key for key in said.keys() | real.keys()
              if key not in said or key not in real
              or (type(said[key]), said[key]) != (type(real[key]), real[key])]  # fmt: skip
    return [f"{name}({key}=)" for key in sorted(differ)]


def test_the_stub_has_every_default() -> None:
    checked, found = 0, []
    for name, node, function in functions(STUB):
        if function is None or not (node.args.defaults or any(node.args.kw_defaults)):
            continue
        checked += len(written(node))
        found += faults(name, node, function)
    assert found == []
    assert checked > 50


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("def f(a, b=1, *, c=None): ...", []),
        ("def f(a, b=2, *, c=None): ...", ["f(b=)"]),
        ("def f(a, b=True, *, c=None): ...", ["f(b=)"]),
        ("def f(a, b=..., *, c=None): ...", ["f(b=)"]),
        ("def f(a, b=1, *, c): ...", ["f(c=)"]),
        ("def f(a=0, b=1, *, c=None): ...", ["f(a=)"]),
        ("@overload\ndef f(a, *, c=None): ...", []),
    ],
)
def test_a_wrong_default_is_found(line: str, said: list[str]) -> None:
    def real(a: int, b: int = 1, *, c: str | None = None) -> None: ...

    (node,) = ast.parse(line).body
    assert isinstance(node, Function)
    assert faults("f", node, real) == said
