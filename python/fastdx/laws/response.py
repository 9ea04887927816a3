"""k-ary randomised response: plain local differential privacy over the whole vocabulary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastdx.laws.base import Law, Price, Space, check_space, positive

__all__ = ["randomized_response"]

MOST = 700.0
"""A larger ε is taken for that: e^-709 is no 64-bit number."""
SOURCE = (
    "S. L. Warner, Randomized Response, Journal of the American Statistical Association 60, 1965; "
    "P. Kairouz, S. Oh, P. Viswanath, Extremal Mechanisms for Local Differential Privacy, NIPS 2014"
)


def randomized_response(space: Space, epsilon: float) -> Law:
    """Return the law of randomised response: the word itself e^ε times as likely as any other one.

    Parameters
    ----------
    space : Embedding or WordGraph
        The words; distances play no part.
    epsilon : float
        ε for any two words, positive.

    Returns
    -------
    Law
        ε for any two words, claimed and proved, and exactly that, up to 700.

    Raises
    ------
    ParameterError
        `epsilon` outside its domain.

    Examples
    --------
    >>> from fastdx import Embedding
    >>> from fastdx.laws import randomized_response
    >>> e = Embedding(["yes", "no"], [[0.0], [1.0]])
    >>> randomized_response(e, 1.0986122886681098).matrix().round(6).tolist()  # ln 3
    [[0.75, 0.25], [0.25, 0.75]]
    """
    check_space(space)
    epsilon = positive("epsilon", epsilon)
    count = len(space)
    # By e^-ε, so that a large ε does not overflow; nor does it make an output impossible.
    odds = np.exp(-min(epsilon, MOST))
    other = odds / (1 + (count - 1) * odds)

    def row(word: int) -> NDArray[np.float64]:
        law = np.full(count, other)
        law[word] = 1 - (count - 1) * other
        return law

    why = "Every output has one of two probabilities, and their ratio is e^ε."
    price = Price(epsilon, why)
    return Law("randomised response", space, row, price, price, SOURCE)
