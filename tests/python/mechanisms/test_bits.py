"""Tests docs/research/bits.md: the wall, the capacity, releases that add up."""

import numpy as np
import pytest
from examples import bits
from experiments import prior
from numpy.typing import NDArray

from fastdx import Embedding, FiniteLaw, Tem
from fastdx.channel import Channel, NgramPrior

Numbers = NDArray[np.float64]


def entropy(p: Numbers) -> float:
    """In bits."""
    some = p[p > 0]
    return float(-(some * np.log2(some)).sum())


def left_open(texts: Numbers, channel: Numbers) -> float:
    """H(X|Y), from the probabilities of all texts and the law of all releases of each."""
    joint = texts[:, None] * channel
    return entropy(joint.ravel()) - entropy(joint.sum(axis=0))


def some_channel(seed: int) -> tuple[Embedding, Channel, Numbers]:
    rng = np.random.default_rng(seed)
    e = Embedding(list("abcde"), rng.normal(size=(5, 2)))
    law = rng.dirichlet(np.full(5, 0.7), 5) + 1e-6
    law /= law.sum(axis=1, keepdims=True)
    return e, Channel.of(FiniteLaw(e, law)), law


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_wall(seed: int, order: int) -> None:
    e, channel, law = some_channel(seed)
    rng = np.random.default_rng(seed + 100)
    public = [" ".join(rng.choice(list("aabcde"), 6)) + "." for _ in range(30)]
    prior = NgramPrior.train(e, public, order)
    first = prior.next([])
    second = np.array([prior.next([w]) for w in e.words])
    third = np.array([[prior.next([u, w]) for w in e.words] for u in e.words])
    texts = first[:, None, None] * second[:, :, None] * third
    releases = np.kron(np.kron(law, law), law)
    open_bits = left_open(texts.ravel(), releases)
    marginals = [texts.sum(axis=tuple({0, 1, 2} - {i})) for i in range(3)]
    by_places = sum(float(channel.bits(p)) for p in marginals)
    n_times = 3 * float(channel.bits(np.mean(marginals, axis=0)))
    assert by_places <= n_times + 1e-9, "a mean of frequencies gives more bits, never fewer"
    assert open_bits >= entropy(texts) - by_places - 1e-9
    if order == 1:  # words that are independent: the wall is reached
        assert open_bits == pytest.approx(entropy(texts) - by_places, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_releases_add_up(seed: int) -> None:
    _, channel, law = some_channel(seed)
    prior = np.random.default_rng(seed).dirichlet(np.ones(5))
    one = float(channel.bits(prior))
    told = one
    several = law
    for n in (2, 3, 4):
        several = (several[:, :, None] * law[:, None, :]).reshape(5, -1)
        before, told = told, entropy(prior) - left_open(prior, several)
        assert before < told <= n * one + 1e-9


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
