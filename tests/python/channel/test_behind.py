"""Receivers of a Tem behind what was released before, against all texts written out."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import named_in_sentences
from fastdx.lab.attacks import sentence_attack
from helpers.laws import behind
from helpers.spaces import normal

pytestmark = pytest.mark.filterwarnings("ignore::fastdx.UnchangedWarning")

E = normal(4, 2, 1)
PUBLIC = ["w0 w1 w2 w1 w0. w3 w1 w2 w2", "w1 w2 w0 w0 w1 w2. w3 w1", "w2 w1 w0 w1 w3 w3"]
MODEL = NgramPrior.train(E, PUBLIC, order=3)
"""What the mechanism draws by."""
READER = NgramPrior.of_frequencies(E, [4, 3, 2, 1])
"""What a receiver knows: another model."""
RELEASES = ["w1 w0 w2", "w3. w0 w0", "w2 w1"]


def tem_of(**others: Any) -> Tem:
    return Tem(E, 3.0, gamma=1.5, language=MODEL, **others)


def columns(tem: Tem, released: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Pr[output | word, history] of each place and word."""
    rows, done = [], 0
    for word in tem.tokenize(released):
        at = released.index(word, done)
        y = E.words.index(word)
        rows.append([tem.probabilities(w, after=released[:at])[y] for w in E.words])
        done = at + len(word)
    return np.array(rows)


# With covers and excluded words: src/channel/tests/behind.rs.
@pytest.mark.parametrize("released", RELEASES)
def test_posteriors_are_those_of_all_texts(released: str) -> None:
    tem = tem_of()
    found = pickle.loads(pickle.dumps(Channel.of(tem))).decode(released, READER)
    rows = columns(tem, released)
    sums = behind(READER, rows, known=False)
    assert found.log_evidence == pytest.approx(np.log(sums[0].sum()), abs=1e-10)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(found.likelihood(i), row, rtol=1e-12)
        np.testing.assert_allclose(found.marginals(i), sums[i] / sums[i].sum(), atol=1e-12)
    # Words of the reader are independent.
    best = [E.words[i] for i in sums.argmax(axis=1)]
    assert tem.tokenize(str(found.viterbi())) == best


def test_attackers_and_bits_of_texts() -> None:
    tem = tem_of()
    texts = PUBLIC * 20
    found = sentence_attack(tem, texts, MODEL, stop_words=())
    assert found.exact and found.bits is None
    # Whoever knows the sentence knows more than who does not.
    assert found.sentence.mean > found.alone.mean - 0.02
    assert 0 < named_in_sentences(tem, texts, MODEL).mean < 1
    bits = Channel.of(tem).text_bits(texts, MODEL)
    assert 0 < bits.low < bits < bits.high and bits.sampled == len(texts)
    with pytest.raises(fastdx.ParameterError, match="at least two"):
        Channel.of(tem).text_bits(["w1"], MODEL)
