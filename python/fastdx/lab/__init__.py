"""The laboratory: attackers, evaluations, comparisons, audits, published laws, and figures.

The rest of fastdx does not use it, except for the commands ``calibrate``, ``compare`` and
``evaluate``. Its modules are imported by their names; some need other packages.
"""

__all__ = [
    "attacks",
    "audit",
    "comparison",
    "evaluation",
    "hyperbolic",
    "laws",
    "noise",
    "plots",
    "report",
]
