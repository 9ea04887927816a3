"""The exact information in a release: bits, capacity, and the posterior of a released text.

A mechanism's law is known: K[w, y] = Pr[M(w) = y]. So what anybody can learn from a release is a
computation, not a guess. `Channel` holds the law, `NgramPrior` what is known of the language, and
`Channel.decode` gives the `Posterior` of the words: the strongest attack on a release for everybody
who knows the language no better, and the best use of it.

>>> from fastdx import Embedding, Tem
>>> from fastdx.channel import Channel, NgramPrior
>>> e = Embedding(["tea", "coffee", "cup", "of"], [[0.0], [2.6], [3.0], [9.0]])
>>> channel = Channel.of(Tem(e, 2.0))
>>> bool(0 < channel.bits() < channel.capacity)
True
>>> prior = NgramPrior.train(e, ["a cup of tea", "cup of coffee", "tea"], order=2)
>>> posterior = channel.decode("coffee of tea", prior)
>>> posterior.viterbi()
'cup of tea'
"""

from __future__ import annotations

from fastdx._core import NgramPrior
from fastdx._types import Bits, LanguageModel
from fastdx.channel.law import Channel
from fastdx.channel.neural import NeuralPrior
from fastdx.channel.posterior import DecodedWord, Posterior, View

__all__ = [
    "Bits",
    "Channel",
    "DecodedWord",
    "LanguageModel",
    "NeuralPrior",
    "NgramPrior",
    "Posterior",
    "View",
]
