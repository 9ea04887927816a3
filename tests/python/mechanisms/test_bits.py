"""Tests the tables of docs/research/bits.md."""

import numpy as np
import pytest
from examples import bits
from experiments import prior

from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior


def test_the_table_of_policies() -> None:
    e = Embedding.default()
    small = Embedding(e.words[:300], e.vectors[:300])
    cells = [c.strip() for c in bits.row("a policy", Tem(small, 3.0)).strip("|").split("|")]
    told = float(Channel.of(Tem(small, 3.0)).bits())
    assert cells[:2] == ["a policy", f"{told:.2f}"] and cells[3].endswith("%")
    assert [float(c) for c in cells[4:]] == [round(max(0.0, h - told), 1) for h in bits.READERS]


def test_a_model_that_knows_more_leaves_less() -> None:
    e = Embedding(list("abcd"), np.eye(4))
    learned = ["a b c d a b c d"] * 50
    left = [prior.bits_left(e, learned, ["a b c d"] * 5, order) for order in (1, 2, 3)]
    assert left[0] > left[1] >= left[2] - 1e-3 and left[0] > 1 > left[1] > 0
    model = NgramPrior.train(e, learned, 2)
    steps = [model.next(list("abcd"[:i]))["abcd".index(w)] for i, w in enumerate("abcd")]
    assert left[1] == pytest.approx(-np.mean(np.log2(steps)), abs=1e-9)
