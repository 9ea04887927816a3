"""The laboratory: attackers, evaluations, comparisons, audits, published laws, and figures.

Nothing else in fastdx imports it; `fastdx.cli` finds the commands ``calibrate``, ``compare`` and
``evaluate`` by name. Its modules are imported when they are asked for; some need other packages.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastdx.lab import (
        attacks,
        audit,
        compared,
        comparison,
        evaluation,
        hyperbolic,
        laws,
        limit,
        noise,
        plots,
        report,
    )

__all__ = [
    "attacks",
    "audit",
    "compared",
    "comparison",
    "evaluation",
    "hyperbolic",
    "laws",
    "limit",
    "noise",
    "plots",
    "report",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
