"""How many documents an answer takes: by a mechanism, by randomised response, by a curator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fastdx._shared.checks import inside, positive
from fastdx._shared.intervals import bisected
from fastdx.channel import Channel
from fastdx.channel.law import Prior, by_rank
from fastdx.counts.estimator import indicator, unknown_of
from fastdx.counts.linear import Rule, rule_for

_Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """How many documents a question takes. Printed, it is an advice."""

    documents: float
    """By the mechanism; infinite where the bias alone exceeds what is wanted."""
    response: float
    """Under randomised response on the words of as many bits a word."""
    curator: float
    """With a curator whom everybody trusts, and who adds Laplace noise of the same ε to the
    count."""
    bias: float
    """The bias of the scores for `documents`; the least that was found where these are infinite."""
    wanted: float
    """How far the estimate may be off."""
    share: float
    """The share asked for."""
    epsilon: float
    """ε of the randomised response, and of the curator's noise."""
    bits: float
    """Bits that an output tells of a word, by the mechanism and by the randomised response."""
    words_per_document: float
    """Words of a document."""

    @property
    def wrong_tool(self) -> bool:
        """Whether randomised response takes less than half of the documents."""
        return self.documents > 2 * self.response

    def __str__(self) -> str:
        asked = f"A share of {self.share:.2%} within ±{self.wanted:.2%}"
        if math.isinf(self.documents):
            says = (f"{asked}: no number of documents is enough, since the bias alone is "
                    f"±{self.bias:.2%}")  # fmt: skip
        else:
            says = (f"{asked} takes {_count(self.documents)} documents of "
                    f"{self.words_per_document:g} words")  # fmt: skip
        says += (f". Randomised response at as many bits a word ({self.bits:.2f}; ε = "
                 f"{self.epsilon:.2f}) takes {_count(self.response)}, a trusted curator with that "
                 f"ε a word {_count(self.curator)}.")  # fmt: skip
        if self.wrong_tool:
            says += " This mechanism is the wrong tool for this question."
        return says


def _count(number: float) -> str:
    digits = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return f"{math.ceil(number / digits) * digits:,}"


def plan(
    channel: Channel,
    words: str | Iterable[str],
    within: float = 0.2,
    share: float = 0.02,
    *,
    prior: Prior = None,
    words_per_document: float = 100.0,
    confidence: float = 0.95,
) -> Plan:
    """Say how many documents it takes to estimate a share of words.

    Words of a document are taken to be independent: if the texts of a person are alike, it takes
    more.

    Parameters
    ----------
    channel, prior
        As for `Estimator`.
    words : str or iterable of str
        The lexicon.
    within : float, optional
        How far the estimate may be off, as a part of the share.
    share : float, optional
        The expected share.
    words_per_document : float, optional
        The words of a document.
    confidence : float, optional
        The probability with which the estimate must be so near.
    """
    positive("words_per_document", words_per_document)
    half = positive("within", within) * inside("share", share)
    wanted = indicator(channel, words)
    public = by_rank(prior, len(channel.mechanism.space))
    width = NormalDist().inv_cdf((1 + inside("confidence", confidence)) / 2)

    def takes(rule: Rule) -> float:
        left = half - rule.bias
        return (width * rule.deviation / left) ** 2 if left > 0 else math.inf

    tilted = _tilted(public, wanted, share)
    best = rule_for(channel, wanted, prior=tilted, unknown=unknown_of(channel, prior), cost=takes)
    bits = float(channel.bits(public))
    epsilon = bisected(lambda e: _response_bits(public, e) < bits, 0.0, 60.0)
    response = _response_words(len(public), int(wanted.sum()), epsilon, share, half / width)
    curator = _curator_words(epsilon, share, half / width)
    ours, theirs, trusted = (
        max(float(np.ceil(n / words_per_document)), 1.0) for n in (takes(best), response, curator)
    )
    return Plan(ours, theirs, trusted, best.bias, half, share, epsilon, bits, words_per_document)


def _tilted(prior: _Numbers, wanted: _Numbers, share: float) -> _Numbers:
    """Return frequencies under which the words have the share, and are else as before."""
    inside, outside = prior * wanted, prior * (1 - wanted)
    if not inside.any():
        inside = wanted
    # Where all other words are at 0, there is nothing to share out.
    others = (1 - share) * outside / (outside.sum() or 1)
    tilted: _Numbers = others + share * inside / inside.sum()
    return tilted


def _response_bits(prior: _Numbers, epsilon: float) -> float:
    """Return the bits that an output of randomised response on all words tells of a word."""
    size = len(prior)
    least = 1 / (math.expm1(epsilon) + size)
    outputs = least + prior * (least * math.expm1(epsilon))
    given = least * math.exp(epsilon)
    row = given * math.log2(given) + (size - 1) * least * math.log2(least)
    return float(-(outputs * np.log2(outputs)).sum() + row)


def _response_words(size: int, count: int, epsilon: float, share: float, error: float) -> float:
    """Return the words it takes for this standard error under randomised response."""
    least = 1 / (math.expm1(epsilon) + size)
    gain = least * math.expm1(epsilon)
    if gain <= 0:
        return math.inf
    seen = count * least + share * gain
    return seen * (1 - seen) / (gain * error) ** 2


def _curator_words(epsilon: float, share: float, error: float) -> float:
    """Return the words it takes where Laplace noise is added to the count of words.

    share·(1 - share)/n + 2/(ε·n)² is the squared error.
    """
    spread, noise = share * (1 - share), 2 / max(epsilon, 1e-9) ** 2
    return (spread + math.sqrt(spread**2 + 4 * error**2 * noise)) / (2 * error**2)
