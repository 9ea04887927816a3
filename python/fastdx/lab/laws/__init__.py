"""Published word mechanisms as laws on a finite vocabulary, with claimed and proved guarantees.

A law is a mechanism's output distribution. Each function returns a `Law`: the probabilities of all
outputs of every word, the guarantee that the publication claims (``claimed``), and the guarantee
that holds (``proved``). docs/research/mechanisms.md has a table with sources.

>>> from fastdx import Embedding
>>> from fastdx.lab import laws
>>> e = Embedding(["a", "b", "c", "d"], [[0.0], [9.0], [1.0], [10.0]])
>>> law = laws.custext(e, 1.0, k=2, partition=False)
>>> law.claimed.epsilon, laws.largest_loss(law.matrix())
(1.0, inf)
"""

from fastdx.lab.laws.base import Law, Price
from fastdx.lab.laws.diffractor import greedy_order, one_diffractor
from fastdx.lab.laws.exponential import (
    randomized_response,
    santext,
    santext_plus,
    syntf,
)
from fastdx.lab.laws.line import truncated_laplace, vickrey
from fastdx.lab.laws.loss import largest_loss
from fastdx.lab.laws.plane import of_noise
from fastdx.lab.laws.programme import blahut_arimoto, optimal, spanner
from fastdx.lab.laws.ranks import rank_based, with_neighbors, words_blending_boxes
from fastdx.lab.laws.registry import NAMES, Published, by_name
from fastdx.lab.laws.sets import custext

__all__ = [
    "NAMES",
    "Law",
    "Price",
    "Published",
    "blahut_arimoto",
    "by_name",
    "custext",
    "greedy_order",
    "largest_loss",
    "of_noise",
    "one_diffractor",
    "optimal",
    "randomized_response",
    "rank_based",
    "santext",
    "santext_plus",
    "spanner",
    "syntf",
    "truncated_laplace",
    "vickrey",
    "with_neighbors",
    "words_blending_boxes",
]
