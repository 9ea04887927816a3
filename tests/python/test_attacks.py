"""Attacks against brute force and against what they must find."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastdx
from fastdx import Cover, Embedding, Mechanism, MultivariateLaplace, NeighborResponse, Tem
from fastdx.attacks import (
    BigramModel,
    Likelihoods,
    mean_similarity,
    reidentification,
    sentence_attack,
)
from fastdx.calibration import choose_cover, choose_epsilon, frontier
from fastdx.channel.marginals import marginals

RNG = np.random.default_rng(3)
E = Embedding([f"w{i}" for i in range(60)], RNG.normal(size=(60, 3)))


def brute(m: Mechanism, prior: np.ndarray, guesses: int) -> tuple[float, float]:
    joint = np.array([m.probabilities(w) for w in m.space.words]) * prior[:, None] / prior.sum()
    best = np.sort(joint, axis=0)[::-1]
    with np.errstate(invalid="ignore"):
        posterior = np.nan_to_num(best[0] / joint.sum(axis=0))
    return best[:guesses].sum(), posterior.max()


@settings(max_examples=25)
@given(
    epsilon=st.floats(0.1, 30),
    k=st.sampled_from([None, 1, 5, 20]),
    guesses=st.integers(1, 80),
    seed=st.integers(0, 99),
)
def test_reidentification_is_exact(epsilon: float, k: int | None, guesses: int, seed: int) -> None:
    prior = np.random.default_rng(seed).exponential(size=60) ** 3
    for m in (Tem(E, epsilon, cover=k), NeighborResponse(E, epsilon, cover=k)):
        found = reidentification(m, prior, [1, guesses])
        one, worst = brute(m, prior, 1)
        assert found.exact and found.success[1] == pytest.approx(one, rel=1e-6)
        assert found.success[guesses] == pytest.approx(brute(m, prior, guesses)[0], rel=1e-6)
        assert found.worst_posterior == pytest.approx(worst, rel=1e-6)
        if k:
            # With a uniform prior never more than the floor.
            assert reidentification(m).success[1] <= m.cover.floor * (1 + 1e-9)
    assert reidentification(Tem(E, epsilon), "rank").success[1] <= 1


def test_noise_is_attacked_by_draws() -> None:
    e = Embedding(["a", "b", "c"], [[0.0], [1.0], [5.0]])
    found = reidentification(MultivariateLaplace(e, 50.0), draws=400)
    assert not found.exact and found.low[1] <= 1.0 and found.success[1] > 0.99
    guess = reidentification(MultivariateLaplace(e, 1e-3), [1.0, 1.0, 8.0], (1, 3), draws=4000)
    assert guess.low[1] <= 0.8 <= guess.high[1] and guess.success[3] > 0.99
    # Against Tem's exact number, by its own draws.
    tem = Tem(E, 3.0)

    class Lawless(MultivariateLaplace):
        """Tem's draws, its law unknown."""

        @property
        def has_law(self) -> bool:
            return False

        def privatize_ids(self, ids: object) -> np.ndarray:
            return tem.privatize_ids(ids)

    by_draws = reidentification(Lawless(E, 3.0), (np.arange(60) + 1.0), draws=20_000)
    exact = reidentification(tem, np.arange(60) + 1.0).success[1]
    assert by_draws.low[1] - 0.005 <= exact <= by_draws.high[1] + 0.01


def test_sentences_behind_noise_are_read_or_not() -> None:
    rng = np.random.default_rng(5)
    texts = [" ".join(E.words[i] for i in rng.integers(0, 60, 50)) for _ in range(40)]
    model = BigramModel(E, [])
    leak = sentence_attack(MultivariateLaplace(E, 1e6, seed=1), texts, model)
    assert leak.words == 2000 and leak.frequency == leak.viterbi == 1.0
    noise = sentence_attack(MultivariateLaplace(E, 1e-9, seed=1), texts, model)
    # 2,000 tries at 1/60: 72 hits or more have a probability below 1e-8.
    assert noise.frequency * 2000 < 72 and noise.viterbi * 2000 < 72


def test_the_bigram_model_counts() -> None:
    e = Embedding(["a", "b", "c"], [[0.0], [1.0], [2.0]])
    model = BigramModel(e, ["a b a b", "zzz a c", "b"], interpolation=0.5)
    counts = np.array([3.5, 3.5, 1.5])
    np.testing.assert_allclose(model.frequencies, counts / counts.sum())
    ids = np.array([0, 1, 2], dtype=np.uint32)
    pairs = np.array([[0, 2, 1], [1, 0, 0], [0, 0, 0]])
    seen = 0.5 * pairs / counts[:, None]
    expected = seen + (1 - seen.sum(axis=1, keepdims=True)) * model.frequencies
    found = np.exp(model.log_probability(ids, ids))
    np.testing.assert_allclose(found, expected)
    # A distribution, also behind a word that was never followed.
    np.testing.assert_allclose(found.sum(axis=1), 1)
    p = np.array([0.2, 0.7, 0.1])
    np.testing.assert_allclose(model.chain.after(p), p @ found)
    np.testing.assert_allclose(model.chain.before(p), found @ p)
    assert [run.tolist() for run in model.runs("a b zzz c, a")] == [[0, 1], [2, 0]]


def test_sentences_are_recovered_where_the_language_says_so() -> None:
    # The first words of two pairs are near each other, the second ones are not.
    words = ["sun", "moon", "rises", "wanes", "dog", "cat", "barks", "mews"]
    e = Embedding(words, [[x] for x in (0, 0.1, 9, 20, 40, 40.1, 60, 80)])
    texts = ["sun rises", "moon wanes", "dog barks", "cat mews"] * 200
    model = BigramModel(e, texts)
    m = Tem(e, 8.0, seed=1)
    found = sentence_attack(m, texts, model, judge=e, stop_words=[])
    assert found.words == 1600 and found.viterbi > found.frequency + 0.1
    assert found.attack == found.viterbi and 0 <= found.unchanged <= 1
    certain = Tem(e, 1e4, gamma=np.inf, seed=2)
    sure = sentence_attack(certain, texts[:40], model, stop_words=["sun", "moon"])
    assert sure.words == 60 and sure.attack == 1.0 and np.isnan(sure.similarity)
    noise = sentence_attack(MultivariateLaplace(e, 1e4, seed=3), texts[:40], model, stop_words=[])
    assert noise.attack == 1.0 and "recovers 100.0%" in str(noise)
    nothing = sentence_attack(Tem(e, 1e-6, seed=4), texts[:400], model, stop_words=[])
    assert nothing.attack < 0.3
    with pytest.raises(fastdx.ParameterError, match="texts"):
        sentence_attack(m, ["zzz"], model)
    with pytest.raises(fastdx.ParameterError, match="model"):
        sentence_attack(Tem(E, 1.0), texts, model)


def test_posteriors_are_sums_over_all_sentences() -> None:
    rng = np.random.default_rng(8)
    e = Embedding(["a", "b", "c", "d"], rng.normal(size=(4, 2)))
    model = BigramModel(e, [" ".join(rng.choice(e.words, 9, p=[0.5, 0.3, 0.15, 0.05]))])
    m = Tem(e, 2.0, cover=2)
    laws = np.array([m.probabilities(word) for word in e.words])
    follows = np.exp(model.log_probability(np.arange(4), np.arange(4)))
    out = np.array([2, 0, 0, 3, 1], dtype=np.uint32)
    found = marginals(model.chain, Likelihoods.of(m, out)(out))
    expected = np.zeros((5, 4))
    for sentence in product(range(4), repeat=5):
        p = model.frequencies[sentence[0]] * np.prod(follows[sentence[:-1], sentence[1:]])
        p *= np.prod(laws[sentence, out])
        expected[np.arange(5), sentence] += p
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)


def test_exact_posteriors_name_more_than_each_output_by_itself() -> None:
    words = ["sun", "moon", "rises", "wanes", "dog", "cat", "barks", "mews"]
    e = Embedding(words, [[x] for x in (0, 0.1, 9, 20, 40, 40.1, 60, 80)])
    texts = ["sun rises", "moon wanes", "dog barks", "cat mews"] * 200
    model = BigramModel(e, texts)
    found = sentence_attack(Tem(e, 8.0, seed=1), texts, model, stop_words=[], exact=True)
    # 1,600 words: by itself sun is moon half of the time; 0.1 is 10 standard errors.
    assert found.exact > found.frequency + 0.1 and found.attack >= found.exact
    assert "by exact posteriors" in str(found)
    m = Tem(e, 8.0, seed=1)
    again = sentence_attack(m, texts, model, stop_words=[], exact=Likelihoods.of(m))
    assert again.exact == found.exact
    assert np.isnan(sentence_attack(Tem(e, 8.0), texts[:4], model, stop_words=[]).exact)
    with pytest.raises(fastdx.ParameterError, match="exact"):
        sentence_attack(MultivariateLaplace(e, 8.0), texts, model, exact=True)


def test_frontiers_and_choices() -> None:
    judge = Embedding(E.words, E.vectors + 0.1 * RNG.normal(size=(60, 3)))
    mechanisms = {"tem": Tem(E, 5.0), "k=6": Tem(E, 5.0, cover=6),
                  "noise": MultivariateLaplace(E, 5.0)}  # fmt: skip
    table = frontier(mechanisms, judge=judge)
    assert table["name"].tolist() == list(mechanisms) and table["R"][1] <= 1 / 6
    assert np.isnan(table["worst_posterior"][2]) and (table["R_10"] >= table["R"]).all()
    texts = [" ".join(RNG.choice(E.words, 8)) for _ in range(60)]
    model = BigramModel(E, texts[:30])
    table = frontier(mechanisms, judge=judge, texts=texts[30:], model=model)
    assert {"attack", "unchanged", "similarity"} <= set(table.columns)
    with pytest.raises(fastdx.ParameterError, match="model"):
        frontier(mechanisms, texts=texts)
    found = choose_cover(E, max_reidentified=0.12, judge=judge, ks=(4, 8, 12), weights=(0.0, 0.1))
    assert reidentification(found.mechanism, "rank").success[1] <= 0.12
    assert found.mechanism.cover.k >= found.k and len(found.table) <= 6
    assert found.k in (4, 8, 12) and found.weight in (0.0, 0.1)
    gain = found.table["similarity"] - found.table["chance"]
    assert mean_similarity(found.mechanism, judge, "rank")[0] > 0
    assert gain.max() >= 0
    with pytest.raises(fastdx.ParameterError, match="max_reidentified"):
        choose_cover(E, max_reidentified=1e-4, judge=judge, ks=(4,), weights=(0.0,))


@pytest.mark.parametrize("promise", ["max_reidentified", "max_posterior"])
def test_epsilon_by_the_attacker(promise: str) -> None:
    tem = Tem(E, 1.0, cover=Cover.nearest(E, 4))
    loose = {"max_unchanged": 1.0, "min_outputs": 1}
    choice = choose_epsilon(tem, **loose, **{promise: 0.2}, prior="rank")
    assert choice.reason == promise.removeprefix("max_")
    at = reidentification(choice.mechanism, "rank")
    above = reidentification(tem.with_epsilon(choice.epsilon * 1.01), "rank")
    by_name = promise == "max_reidentified"
    reached = [r.success[1] if by_name else r.worst_posterior for r in (at, above)]
    assert reached[0] <= 0.2 < reached[1] and "0.2" in str(choice)
    with pytest.raises(fastdx.ParameterError, match=promise):
        choose_epsilon(MultivariateLaplace(E, 1.0), **{promise: 0.2})
    with pytest.raises(fastdx.ParameterError, match=promise):
        choose_epsilon(tem, **{promise: 0.0})


@pytest.mark.parametrize("promise", ["max_reidentified", "max_posterior"])
def test_what_is_known_without_an_output_cannot_be_promised(
    monkeypatch: pytest.MonkeyPatch, promise: str
) -> None:
    monkeypatch.delattr("fastdx.calibration.choice.reidentification")
    prior = np.ones(len(E))
    prior[3] = len(E) / 4
    share = 1.0 / (1 + 4 * (len(E) - 1) / len(E))
    with pytest.raises(fastdx.ParameterError, match=f"no ε .* {promise} .* at least {share:.4g}"):
        choose_epsilon(Tem(E, 1.0), **{promise: 0.99 * share}, prior=prior)


@pytest.mark.parametrize(("most", "reason", "passes"), [(0.99, "unchanged", 4), (0.15, "", 10)])
def test_few_passes_over_all_laws_choose_epsilon(
    monkeypatch: pytest.MonkeyPatch, most: float, reason: str, passes: int
) -> None:
    asked = []

    def counted(mechanism: Mechanism, *args: Any, **options: Any) -> Any:
        asked.append(mechanism.epsilon)
        return reidentification(mechanism, *args, **options)

    monkeypatch.setattr("fastdx.calibration.choice.reidentification", counted)
    tem = Tem(E, 1.0, cover=Cover.nearest(E, 2))
    choice = choose_epsilon(tem, max_unchanged=0.4, min_outputs=1, max_reidentified=most)
    assert choice.reason == (reason or "reidentified")
    assert 1 <= len(asked) == len(set(asked)) <= passes
    # What is promised was computed at the very ε, by all laws.
    assert choice.epsilon in asked
    assert reidentification(choice.mechanism).success[1] <= most
    beyond = choose_epsilon(tem, max_unchanged=0.4, min_outputs=1).epsilon
    assert choice.epsilon <= beyond * (1 + 1e-12)


def test_what_is_wrong_is_named() -> None:
    tem = Tem(E, 1.0)
    for arguments in (
        {"prior": [1.0]},
        {"prior": -np.ones(60)},
        {"prior": np.zeros(60)},
        {"prior": "zipf"},
        {"guesses": 0},
        {"guesses": []},
    ):
        with pytest.raises(fastdx.ParameterError):
            reidentification(tem, **arguments)
    with pytest.raises(fastdx.InputTypeError):
        reidentification("tem")
    with pytest.raises(fastdx.ParameterError):
        BigramModel(E, [], interpolation=1.0)
