"""For the API's pages: a class that is made by `__new__` shows that signature."""

from __future__ import annotations

from typing import Any

import griffe


class Constructors(griffe.Extension):
    """Gives classes with `__new__` and without `__init__` an `__init__` of the same parameters."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        made = cls.members.get("__new__")
        if "__init__" in cls.members or not isinstance(made, griffe.Function):
            return
        cls.set_member(
            "__init__",
            griffe.Function(
                "__init__",
                lineno=made.lineno,
                endlineno=made.endlineno,
                parameters=griffe.Parameters(*made.parameters),
                parent=cls,
            ),
        )
