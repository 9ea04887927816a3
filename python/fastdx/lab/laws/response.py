"""k-ary randomised response: plain local differential privacy over the whole vocabulary."""

from __future__ import annotations

import numpy as np

from fastdx._core import LawRows
from fastdx.lab.laws.base import Law, Price, Space, check_space, positive

MAX_EPSILON = 700.0
"""The largest ε of the computed law, because e^-709 is no normal 64-bit number."""
SOURCE = (
    "S. L. Warner, Randomized Response, Journal of the American Statistical Association 60, 1965; "
    "P. Kairouz, S. Oh, P. Viswanath, Extremal Mechanisms for Local Differential Privacy, NIPS 2014"
)


def randomized_response(space: Space, epsilon: float) -> Law:
    """Return the law of randomised response: the word itself is e^ε times as likely as any other.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words; the law does not depend on distances.
    epsilon : float
        ε for any two words, positive.

    Returns
    -------
    Law
        Claimed and proved: ε for any two words. Up to ε = 700 no smaller ε holds.

    Raises
    ------
    ParameterError
        `epsilon` lies outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.lab.laws import randomized_response
    >>> e = Embedding(["yes", "no"], [[0.0], [1.0]])
    >>> randomized_response(e, 1.0986122886681098).matrix().round(6).tolist()  # ln 3
    [[0.75, 0.25], [0.25, 0.75]]
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    count = len(space)
    # Computed from e^-ε: a large ε then neither overflows nor makes an output impossible.
    odds = np.exp(-min(epsilon, MAX_EPSILON))
    other = odds / (1 + (count - 1) * odds)
    row = LawRows.alike(count, 1 - (count - 1) * other, other)

    why = "Every output has one of two probabilities, and their ratio is e^ε."
    price = Price(epsilon, why)
    return Law("randomised response", space, row, price, price, SOURCE)
