"""What ε does to words, in numbers that it can be chosen by.

For a word w: N_w is the probability that it comes back unchanged; S_w the number of distinct
outputs in so many draws, as the papers have it; ``support`` the size of the smallest set of outputs
of probability at least 1 - η; K_w the size of the smallest set of inputs that explain an output
w with that probability, were all inputs equally likely (WSDM'20 section 4.1, ICDM'19 section V).
For Tem all are exact sums over its law; for the other mechanisms they are counted in draws.
"""

from fastdx.calibration.choice import Choice, Match, choose_epsilon, match
from fastdx.calibration.comparison import CoverChoice, choose_cover, frontier
from fastdx.calibration.families import Comparison, Family, compare, families, family_names
from fastdx.calibration.measures import near_losses, statistics, sweep
from fastdx.calibration.table import Table

__all__ = [
    "Choice",
    "Comparison",
    "CoverChoice",
    "Family",
    "Match",
    "Table",
    "choose_cover",
    "choose_epsilon",
    "compare",
    "families",
    "family_names",
    "frontier",
    "match",
    "near_losses",
    "statistics",
    "sweep",
]
