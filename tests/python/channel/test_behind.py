"""Attackers of a Tem whose law depends on what was released; posteriors: src/channel/tests."""

from __future__ import annotations

import pytest

from fastdx import Tem
from fastdx.channel import NgramPrior
from fastdx.channel.guesses import named_in_sentences
from fastdx.lab.attacks import sentence_attack
from helpers.spaces import normal

pytestmark = pytest.mark.filterwarnings("ignore::fastdx.UnchangedWarning")

E = normal(4, 2, 1)
PUBLIC = ["w0 w1 w2 w1 w0. w3 w1 w2 w2", "w1 w2 w0 w0 w1 w2. w3 w1", "w2 w1 w0 w1 w3 w3"]
MODEL = NgramPrior.train(E, PUBLIC, order=3)
"""What the mechanism draws by."""


def test_attackers() -> None:
    tem = Tem(E, 3.0, gamma=1.5, language=MODEL)
    texts = PUBLIC * 20
    found = sentence_attack(tem, texts, MODEL, stop_words=())
    assert found.exact and found.bits is None
    # Whoever knows the sentence knows more than who does not.
    assert found.sentence.mean > found.alone.mean - 0.02
    assert 0 < named_in_sentences(tem, texts, MODEL).mean < 1
