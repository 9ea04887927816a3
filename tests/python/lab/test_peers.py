"""The comparison with peers convicts one that draws from another law, and acquits an honest one."""

import numpy as np
import pytest
from experiments import data, peers, peers_made
from experiments.measures import Numbers
from experiments.peers_made import Ids, Peer, Rule, far_mass, ours, outputs

from fastdx import Embedding, MultivariateLaplace, Tem

EPSILON, GAMMA = 4.0, 1.0
DRAWS = 4000


@pytest.fixture(scope="module")
def space() -> Embedding:
    vectors = np.random.default_rng(0).normal(size=(30, 2))
    return Embedding([f"word{i}" for i in range(30)], vectors)


def planted(e: Embedding, rule: Rule, stated: Rule, coded: Rule | None = None) -> Peer:
    """A peer that draws by a rule, whatever it states."""
    places = {word: i for i, word in enumerate(e.words)}
    rng = np.random.default_rng(1)

    def draw(words: list[str]) -> list[str]:
        return [e.words[i] for i in outputs(rule, np.array([places[w] for w in words]), rng)]

    return Peer("planted", "TEM", EPSILON, draw, stated, "", coded)


def found(e: Embedding, peer: Peer) -> dict[str, float]:
    return dict(peers.compared(peer, list(e.words), [0, 7, 21], DRAWS, 20_000))


def test_an_honest_peer_is_acquitted(space: Embedding) -> None:
    law = ours(Tem(space, EPSILON, gamma=GAMMA))
    assert found(space, planted(space, law, law))["stated"] > 1e-3
    v = space.vectors.astype(np.float64)

    def nearest(z: Numbers, ids: Ids, rng: np.random.Generator) -> Ids:
        return np.asarray(((z[:, None] - v) ** 2).sum(axis=2).argmin(axis=1))

    noise = ours(MultivariateLaplace(space, peers_made.EPSILON))  # as `noisy` takes it
    p = found(space, planted(space, peers_made.noisy(space, nearest), noise, law))
    assert p["stated"] > 1e-3 > 1e-9 > p["coded"]


@pytest.mark.parametrize("size", [None, 1000])  # PyPantera's ⊥, and mldp-text's
def test_a_planted_fault_is_convicted(space: Embedding, size: int | None) -> None:
    law = ours(Tem(space, EPSILON, gamma=GAMMA))
    fault = far_mass(space, EPSILON, GAMMA, size)
    p = found(space, planted(space, fault, law, fault))
    assert p["stated"] < 1e-9 and p["coded"] > 1e-3
    truth, honest = (peers.epsilon_of(rule, space) for rule in (fault, law))
    assert truth is not None and honest is not None
    assert honest <= EPSILON * (1 + 1e-9) < truth  # ∞ where ⊥ returns the word


def test_rare_outcomes_count_together() -> None:
    law = np.array([0.999, *[1e-4] * 10])
    assert peers.follows([3000, *[0] * 10], law) > 0.05  # 3 expected
    assert peers.follows([2950, *[5] * 10], law) < 1e-9
    assert peers.follows([10, 0, 0], [1.0, 0.0, 0.0]) == 1.0
    assert peers.follows([9, 1, 0], [1.0, 0.0, 0.0]) == 0.0
    assert peers.alike([500, 500], [5000, 5100]) > 1e-3 > peers.alike([400, 600], [5000, 5100])


def test_attackers_name_all_of_a_leak_and_nothing_behind_noise() -> None:
    rules: list[Rule] = [lambda ids, rng: ids, np.eye(200),
                         lambda ids, rng: rng.integers(0, 200, len(ids))]  # fmt: skip
    sampled, whole, hidden = (peers._used(r, data.Sample(), 200, (100, 60, 10)) for r in rules)
    for found in (sampled, whole):
        assert found["named"] == found["same"] == pytest.approx(1.0)
        assert found["in texts"][0] == found["in texts"][1] > 100
    commonest = peers.by_rank(200)[0]
    assert hidden["named"] < 1.3 * commonest and hidden["right"][0] < 45
    assert hidden["in texts"][0] < 0.2 * hidden["in texts"][1]
