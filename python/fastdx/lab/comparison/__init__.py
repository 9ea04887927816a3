"""Comparisons of mechanisms at one ε, at equal success of an attacker, or at equal bits.

`families` makes every known mechanism by its name, `compare` and `frontier` measure them, and
`choose_cover` chooses a cover and its ε.
"""

from fastdx.lab.comparison.families import Comparison, Family, compare, families, family_names
from fastdx.lab.comparison.frontier import CoverChoice, choose_cover, frontier, largest_epsilon

__all__ = [
    "Comparison",
    "CoverChoice",
    "Family",
    "choose_cover",
    "compare",
    "families",
    "family_names",
    "frontier",
    "largest_epsilon",
]
