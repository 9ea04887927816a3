"""Word frequencies behind releases: shares of lexicons with intervals, differences of groups.

Outputs counted as they are mislead. The law of a mechanism is known, so what they tell of the words
behind them can be computed, and how far off it may be. All of it needs the releases and their
channel's card, nothing else.

>>> from fastdx import Tem, counts
>>> from fastdx.channel import Channel
>>> found = counts.Estimator(Channel.of(Tem.recommended()))
>>> found.add(Tem.recommended().privatize(["a cup of tea", "a cup of coffee"]))
Estimator(2 documents, 8 words)
"""

from __future__ import annotations

from fastdx.counts.estimator import Difference, Distribution, Estimator, Share
from fastdx.counts.planning import Plan, plan

__all__ = ["Difference", "Distribution", "Estimator", "Plan", "Share", "plan"]
