"""The laboratory: attackers, evaluations, comparisons, audits, published laws, and figures.

The rest of fastdx does not use it, except for the commands ``calibrate``, ``compare`` and
``evaluate``. Its modules are imported when they are asked for; some need other packages.
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
