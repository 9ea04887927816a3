"""Mechanisms given as laws: what is drawn is the law, and what is claimed was computed from it."""

import pickle
import re
from math import inf

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, FiniteLaw
from fastdx._shared.rounded import down, up
from fastdx.lab import audit
from helpers.bounds import allowed
from helpers.draws import as_users_draw, assert_draws
from helpers.spaces import line, numbered

RNG = np.random.default_rng(8)
E = numbered(RNG.normal(size=(40, 3)))
LAW = RNG.dirichlet(np.ones(40), size=40)


class Row:
    """A function of a word that can be pickled."""

    def __call__(self, word: int) -> np.ndarray:
        return LAW[word]


GIVEN = {"array": LAW, "function": Row(), "float32": LAW.astype(np.float32)}


@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_given_is_what_is_drawn(kind: str) -> None:
    m = FiniteLaw(E, GIVEN[kind], seed=5)
    rounding = 1e-7 if kind == "float32" else 1e-15
    users = as_users_draw(m)
    for i, word in enumerate(E.words[:2]):
        np.testing.assert_allclose(m.probabilities(word), LAW[i], rtol=rounding)
        assert_draws(users, word, m.probabilities(word))
    copy = pickle.loads(pickle.dumps(m))
    assert repr(copy) == repr(m) and copy.epsilon == m.epsilon
    assert (copy.sample("w3", 100) == FiniteLaw(E, GIVEN[kind], seed=5).sample("w3", 100)).all()


# test_every_law.py compares its ε with the law's.
def test_it_pays_for_an_unknown_word_too() -> None:
    m = FiniteLaw(E, LAW)
    assert m.guarantee.bound("w0", "w1") == pytest.approx(m.epsilon * E.distance("w0", "w1"))
    assert m.guarantee.void is None
    # It is replaced uniformly.
    assert allowed(m.guarantee, "zzz", "w1") >= np.abs(np.log(40 * LAW[1])).max() * (1 - 1e-9)


def test_nothing_is_claimed_that_was_not_computed() -> None:
    unknown = FiniteLaw(E, LAW, certify=False)
    assert "NOTHING IS PROTECTED" in str(unknown.guarantee) and unknown.local is None
    assert unknown.epsilon == inf and "not certified" in repr(unknown)
    assert FiniteLaw(E, LAW, certify=True).epsilon < inf
    assert pickle.loads(pickle.dumps(unknown)).local is None
    # Sets of words that keep to themselves: no ε between them.
    apart = np.kron(np.eye(4), np.ones((10, 10)))
    sets = FiniteLaw(E, apart)
    assert sets.epsilon == inf and "NOTHING IS PROTECTED" in str(sets.guarantee)
    assert set(sets.sample("w3", 1000)) == set(range(10))
    # Words at the same place that are told apart.
    twice = line(1, 1)
    assert FiniteLaw(twice, [[2, 1], [1, 2]]).epsilon == inf
    assert FiniteLaw(twice, [[1, 1], [1, 1]]).epsilon == 0.0
    assert "SEEDED" in str(FiniteLaw(E, LAW, seed=1).guarantee)


def test_words_are_excluded_from_the_law_that_is_certified() -> None:
    m = FiniteLaw(E, LAW, exclude=["w0", "w7"])
    assert m.excluded == ["w0", "w7"] and m.probabilities("w0")[[0, 7]].sum() == 0
    left = np.delete(LAW, [0, 7], axis=1)
    left /= left.sum(axis=1, keepdims=True)
    assert m.local == pytest.approx((np.log(left).max(axis=0) - np.log(left).min(axis=0)).max())
    assert not {0, 7} & set(m.sample("w0", 10_000))


def test_a_function_that_changes_its_mind_is_found_out() -> None:
    rows = LAW.copy()
    m = FiniteLaw(E, lambda word: rows[word], cache_bytes=0)
    m.privatize_ids([3, 4])
    rows[3] = rows[3][::-1]
    m.privatize_ids([4])
    with pytest.raises(fastdx.ParameterError, match="another row for word 3"):
        m.privatize_ids([3])
    given = LAW.copy()
    kept = FiniteLaw(E, given)
    given[:] = 1.0
    np.testing.assert_allclose(kept.probabilities("w1"), LAW[1], rtol=1e-15)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (LAW[:39], "law"),
        (LAW[:, :39], "law"),
        (np.zeros((40, 40)), "zeros alone in the row of word 0"),
        (-LAW, "in the row of word 0"),
        (np.full((40, 40), np.nan), "NaN in the row of word 0"),
        (lambda word: LAW[word][:5], "for word 0"),
        (lambda _: 1 / 0, "ZeroDivisionError for word 0"),
        (None, "law is missing"),
        ([["a"] * 40] * 40, "law"),
    ],
)
def test_bad_laws_are_refused(law: object, message: str) -> None:
    with pytest.raises((fastdx.FastdxError, TypeError), match=message):
        FiniteLaw(E, law, threads=1)


def test_it_has_no_other_epsilon() -> None:
    with pytest.raises(fastdx.ParameterError, match="epsilon must be left as it is"):
        FiniteLaw(E, LAW).with_epsilon(1.0)
    with pytest.raises(fastdx.InputTypeError, match="space"):
        FiniteLaw(law=LAW)
    # Of many words nothing is computed unasked.
    many = numbered(np.eye(2001, 2))
    assert FiniteLaw(many, lambda _: np.ones(2001)).local is None


def test_the_slack_covers_what_a_computed_loss_leaves_out() -> None:
    """Two words at one place whose laws differ by less than is counted."""
    e = line(0, 0, 1)
    law = np.array([[0.5, 0.25, 0.25]] * 3)
    law[1] *= [1 + 9e-10, 1, 1]
    m = FiniteLaw(e, law)
    assert m.guarantee.bound("a", "b") == 0 and m.guarantee.void is None
    ratios = np.abs(np.log(m.probabilities("a")) - np.log(m.probabilities("b")))
    assert 1e-10 < ratios.max() <= m.guarantee.slack < 1e-8
    assert m.guarantee.slack == 2e-9 and "exp(2.0e-9) of arithmetic" in str(m.guarantee)


def test_what_is_shown_of_a_bound_is_not_below_it() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        e = Embedding(["a", "b", "c"], rng.normal(size=(3, 1)))
        m = FiniteLaw(e, rng.dirichlet(np.ones(3), size=3))
        shown = [float(x) for x in re.findall(r"(?:epsilon|local)=([^,]+)", repr(m))]
        for one, bound in zip(shown, (m.epsilon, m.local), strict=True):
            assert bound is not None and bound <= one < bound * (1 + 1.001e-3)
    loss = audit.LargestLoss(1.0000004, ("a", "b"), "a", 2.0000004, ("a", "b"), "a", "m")
    assert "ε = 1.001 per" in str(loss) and "ε = 2.001 for" in str(loss)
    assert up(1.0004, 3) == "1.01" and down(0.99999, 3) == "0.999" and up(inf) == "inf"
