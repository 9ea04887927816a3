"""A griffe extension for the API's pages that shows the signature of a class's `__new__`."""

from __future__ import annotations

from typing import Any

import griffe


class Constructors(griffe.Extension):
    """Gives a class with `__new__` and without `__init__` an `__init__` of the same parameters.

    It works for Python sources and stubs only; the signatures of compiled classes are not known.
    """

    def on_class_members(
        self, *, cls: griffe.Class, agent: griffe.Visitor | griffe.Inspector, **_: Any
    ) -> None:
        made = cls.members.get("__new__")
        if isinstance(agent, griffe.Inspector) or "__init__" in cls.members:
            return
        if isinstance(made, griffe.Function):
            init = griffe.Function(
                "__init__",
                lineno=made.lineno,
                endlineno=made.endlineno,
                parameters=griffe.Parameters(*made.parameters),
            )
            cls.set_member("__init__", init)
