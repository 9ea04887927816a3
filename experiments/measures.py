"""Measures of a mechanism that several papers' tables show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastdx import Mechanism, calibration
from fastdx.channel import Channel


def unchanged(mechanism: Mechanism) -> float:
    """Mean N_w of 200 words spread over the vocabulary: how much noise an ε is there."""
    words = mechanism.space.words
    spread = [words[i] for i in np.linspace(0, len(words) - 1, 200).astype(int)]
    return float(calibration.statistics(mechanism, spread, 300, inputs=False)["N_w"].mean())


def epsilon_of_bits(make: Callable[[float], Mechanism], bits: float) -> float:
    """The ε at which a word's output tells so many bits, to about 1%."""
    low, high = 0.3, 40.0
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        made = make(middle)
        told = float(Channel.of(made).bits(sample=min(400, len(made.space))))
        low, high = (middle, high) if told < bits else (low, middle)
    return (low * high) ** 0.5
