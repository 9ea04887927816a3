"""Consequences of ε for words, in numbers by which a user can choose it.

For a word w (N_w and S_w: WSDM'20 section 3.2; K_w and entropies: ICDM'19 section VI):

- N_w is the probability that w comes back unchanged.
- S_w is the number of distinct outputs in a given number of draws, as in the papers.
- ``support`` is the size of the smallest set of outputs of probability at least 1 - η.
- ``credible_inputs`` is the size of the smallest set of inputs that has posterior probability at
  least 1 - η when w is seen, if all inputs are equally likely. It needs a law.
- K_w is the number of inputs that gave w at least once in draws. It needs no law.

For mechanisms with a law the others are exact sums over it, else they are counted in draws.
"""

from fastdx.calibration.choice import Choice, choose_epsilon
from fastdx.calibration.measures import Table, statistics

__all__ = [
    "Choice",
    "Table",
    "choose_epsilon",
    "statistics",
]
