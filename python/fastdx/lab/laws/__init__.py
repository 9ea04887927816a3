"""Published word mechanisms as laws on a finite vocabulary, with claimed and proved guarantees.

A law is a mechanism's output distribution. Each function returns a `Law`: the probabilities of all
outputs of every word, the guarantee that the publication claims (``claimed``), and the guarantee
that holds (``proved``). docs/research/mechanisms.md has a table, REFERENCES.md the publications.

Functions take ``space``, an Embedding or a WordGraph with the words, most frequent first, and their
metric; and ``epsilon``, positive, in the unit of the claim. They raise `ParameterError`, which
names the parameter, for a number outside its domain, and `UnknownWordError` for words that the
vocabulary lacks.

>>> from fastdx import Embedding
>>> from fastdx.lab import laws
>>> e = Embedding(["a", "b", "c", "d"], [[0.0], [9.0], [1.0], [10.0]])
>>> law = laws.custext(e, 1.0, k=2, partition=False)
>>> law.claimed.epsilon, laws.largest_loss(law.matrix())
(1.0, inf)
"""

from fastdx.lab.laws.base import Law, Price
from fastdx.lab.laws.formulas import (
    blahut_arimoto,
    custext,
    greedy_order,
    one_diffractor,
    randomized_response,
    rank_based,
    santext,
    santext_plus,
    syntf,
    with_neighbors,
    words_blending_boxes,
)
from fastdx.lab.laws.line import truncated_laplace, vickrey
from fastdx.lab.laws.loss import largest_loss
from fastdx.lab.laws.programme import optimal

__all__ = [
    "Law",
    "Price",
    "blahut_arimoto",
    "custext",
    "greedy_order",
    "largest_loss",
    "one_diffractor",
    "optimal",
    "randomized_response",
    "rank_based",
    "santext",
    "santext_plus",
    "syntf",
    "truncated_laplace",
    "vickrey",
    "with_neighbors",
    "words_blending_boxes",
]
