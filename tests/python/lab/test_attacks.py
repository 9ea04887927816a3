"""Attacks against brute force and against what they must find."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastdx
from fastdx import Cover, Embedding, Mechanism, MultivariateLaplace, NeighborResponse, Tem
from fastdx.calibration import choose_epsilon
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.guesses import best_guess
from fastdx.lab.attacks import (
    LikelyInputs,
    known_runs,
    reidentification,
    sentence_attack,
)
from fastdx.lab.evaluation import over_texts
from helpers.command import Command
from helpers.errors import refused
from helpers.laws import bits_of, law_of, zipf
from helpers.spaces import line, numbered

RNG = np.random.default_rng(3)
E = numbered(RNG.normal(size=(60, 3)))


def brute(m: Mechanism, prior: np.ndarray, guesses: int) -> tuple[float, float]:
    joint = law_of(m) * prior[:, None] / prior.sum()
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
    e = line(0, 1, 5)
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
    model = NgramPrior.train(E, [])
    leak = sentence_attack(MultivariateLaplace(E, 1e6, seed=1), texts, model)
    assert leak.words == 2000 and leak.alone.mean == leak.sentence.mean == 1.0
    assert not leak.exact and leak.bits is None
    assert "as far as draws tell" in str(leak) and "names 100.0%" in str(leak)
    # Without any hit too, an interval says how few words there were.
    assert 0.998 < leak.sentence.low < leak.sentence.high == 1.0
    noise = sentence_attack(MultivariateLaplace(E, 1e-9, seed=1), texts, model)
    # 2,000 tries; the commonest word is named by 1/(rank + 2.7), far less than a fifth.
    assert noise.attack.mean < 0.2


# Behind a law the sums are the channel's: src/channel/tests.rs.
def test_noise_is_summed_over_the_candidates_of_all_places() -> None:
    """As many candidates as words: the sum is over all sentences, under the law that draws say."""
    rng = np.random.default_rng(8)
    e = Embedding(["a", "b", "c", "d"], rng.normal(size=(4, 2)))
    model = NgramPrior.train(e, [" ".join(rng.choice(e.words, 9)) for _ in range(30)])
    noise = MultivariateLaplace(e, 1.0, seed=3)
    inputs = LikelyInputs.of(noise, model.frequencies, 4, draws=500)
    texts = [" ".join(rng.choice(e.words, 5)) for _ in range(60)]
    found = sentence_attack(noise, texts, model, inputs=inputs, stop_words=[])
    # The same draws, and all sentences of five words.
    law = np.zeros((4, 4))
    for y in range(4):
        law[inputs.words[y], y] = inputs.joint[y] / model.frequencies[inputs.words[y]]
    follows = model.behind(range(4), range(4))
    released = MultivariateLaplace(e, 1.0, seed=3)
    released.privatize_ids(np.repeat(np.arange(4, dtype=np.uint32), 500))
    hits = 0
    for text, out in zip(texts, released.privatize(texts), strict=True):
        total = np.zeros((5, 4))
        written, y = e.ids(text.split()), e.ids(out.split())
        for sentence in product(range(4), repeat=5):
            p = model.frequencies[sentence[0]] * np.prod(follows[sentence[:-1], sentence[1:]])
            total[np.arange(5), sentence] += p * np.prod(law[sentence, y])
        hits += (total.argmax(axis=1) == written).sum()
    assert found.sentence.mean == pytest.approx(hits / 300)


def test_runs_of_known_words() -> None:
    e = line(0, 1, 2)
    runs = known_runs(e, ["a b zzz c, a", "zzz", "b"])
    assert [run.tolist() for run in runs] == [[0, 1], [2, 0], [1]]
    model = NgramPrior.train(e, ["a b a b", "zzz a c", "b"])
    found = model.behind([0, 2], [0, 1, 2])
    assert found.shape == (2, 3)
    # Behind words in the middle of a sentence; the rest is the unknown word.
    for row, word in zip(found, "ac", strict=True):
        rest = model.unknown_next(["b", word])
        np.testing.assert_allclose(row, model.next(["b", word]) * (1 - rest), rtol=1e-9)
    with pytest.raises(fastdx.FastdxError):
        model.behind([3], [0])


def test_sentences_are_recovered_where_the_language_says_so() -> None:
    # The first words of two pairs are near each other, the second ones are not.
    words = ["sun", "moon", "rises", "wanes", "dog", "cat", "barks", "mews"]
    e = Embedding(words, [[x] for x in (0, 0.1, 9, 20, 40, 40.1, 60, 80)])
    texts = ["sun rises", "moon wanes", "dog barks", "cat mews"] * 200
    model = NgramPrior.train(e, texts)
    m = Tem(e, 8.0, seed=1)
    found = sentence_attack(m, texts, model, judge=e, stop_words=[])
    # 1,600 words: by itself sun is moon half of the time; 0.1 is 10 standard errors.
    assert found.words == 1600 and found.texts == 800 and found.exact
    assert found.sentence.mean > found.alone.mean + 0.1
    assert found.attack == found.sentence and 0 <= found.unchanged <= 1
    assert found.sentence.low < found.sentence.mean < found.sentence.high
    assert float(found.bits) == pytest.approx(Channel.of(m).bits(model))
    assert f"{found.sentence.mean:.1%}" in str(found) and "bits a word" in str(found)
    again = sentence_attack(Tem(e, 8.0, seed=1), texts, model, stop_words=[],
                            channel=Channel.of(Tem(e, 8.0)), bits=False)  # fmt: skip
    assert again.sentence == found.sentence and again.bits is None
    certain = Tem(e, 1e4, gamma=np.inf, seed=2)
    sure = sentence_attack(certain, texts[:40], model, stop_words=["sun", "moon"])
    assert sure.words == 60 and sure.attack.mean == 1.0 and np.isnan(sure.similarity)
    nothing = sentence_attack(Tem(e, 1e-6, seed=4), texts[:400], model, stop_words=[])
    assert nothing.attack.mean < 0.3
    for wrong, name in (
        ({"texts": ["zzz"]}, "texts"),
        ({"mechanism": Tem(E, 1.0)}, "model"),
        ({"model": model.frequencies}, "model"),
        ({"channel": Channel.of(Tem(e, 7.0))}, "channel"),
        ({"stop_words": words}, "content word"),
    ):
        with pytest.raises(fastdx.FastdxError, match=name):
            sentence_attack(**{"mechanism": m, "texts": texts, "model": model, **wrong})


def test_a_word_alone_is_named_by_the_law_and_the_frequencies() -> None:
    e = line(0, 1)
    model = NgramPrior.train(e, ["a a a a a a a a b"] * 20)
    found = sentence_attack(Tem(e, 0.5, seed=1), ["a b"] * 50, model, stop_words=[], bits=False)
    # Whatever comes out, "a" is likelier.
    assert found.alone.mean == 0.5


@pytest.mark.parametrize("order", [1, 2])
def test_who_names_content_words_names_more_than_come_back(order: int) -> None:
    """Stop words and unknown words are likelier, but they are not counted: nobody names them."""
    rng = np.random.default_rng(18)
    content = [f"c{i}" for i in range(30)]
    e = Embedding(["the", "of", *content], rng.normal(size=(32, 20)))
    written = ["the", "of", "zzz", *content]
    p = np.array([0.25, 0.1, 0.4, *np.full(30, 0.25 / 30)])

    def drawn(count: int) -> list[str]:
        return [" ".join(row) for row in rng.choice(written, (count, 10), p=p)]

    model = NgramPrior.train(e, drawn(2000), order)
    for m in (Tem(e, 1.2, seed=1), NeighborResponse(e, 3.0, cover=4, seed=2)):
        found = sentence_attack(m, drawn(3000), model)
        # 7,500 words: four standard errors of the difference are .03 at most.
        assert found.sentence.mean > found.unchanged - 0.03
        assert found.alone.mean > found.unchanged - 0.03
        # One in thirty by chance.
        assert found.sentence.mean > 0.1


def test_what_text_is_handled_like_is_attacked_like() -> None:
    """Unknown, skipped and repeated words, boundaries of texts: one word each text is at stake."""
    e = Embedding(["sun", "moon", "rises", "wanes"], [[0.0], [0.1], [9.0], [20.0]])
    texts = ["Sun, rises!", "moon wanes zzz", "zzz moon; moon wanes"] * 40
    model = NgramPrior.train(e, texts)
    counted = {}
    for oov in ("random", "keep", "drop", "mask"):
        for more in ({}, {"skip": ["rises"]}, {"consistent": True}):
            m = Tem(e, 8.0, seed=1, oov=oov, **more)
            found = sentence_attack(m, texts, model, stop_words=[], bits=False)
            counted[(oov, *more)] = found.words
            assert found.texts == 120
            # rises and wanes tell sun and moon apart, and so does skipped rises.
            assert found.sentence.mean > 0.9 > found.alone.mean
    assert {counted[key] for key in counted if "skip" in key} == {240}
    assert {counted[key] for key in counted if "skip" not in key} == {280}


def test_intervals_over_texts() -> None:
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(400):
        # Texts differ: 60 of 5 to 20 words, each with a share of its own around 0.3.
        words = rng.integers(5, 20, 60)
        hits = rng.binomial(words, rng.beta(3, 7, 60))
        found = over_texts(hits, words)
        inside += found.low <= 0.3 <= found.high
    # At 95% 400 intervals miss 20 times on average; 50 times or more has a probability below 1e-8.
    assert inside > 350
    one, none = over_texts([0], [10]), over_texts([0, 0], [10, 0])
    assert one.low == 0.0 and 0.3 < one.high == none.high < 0.31
    for wrong in (([1], [1, 2]), ([0], [0]), ([], [])):
        with pytest.raises(fastdx.ParameterError, match="words"):
            over_texts(*wrong)


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
def test_what_is_known_without_an_output_cannot_be_promised(promise: str) -> None:
    prior = np.ones(len(E))
    prior[3] = len(E) / 4
    share = 1.0 / (1 + 4 * (len(E) - 1) / len(E))
    with pytest.raises(fastdx.ParameterError, match=f"no ε .* {promise} .* at least {share:.4g}"):
        choose_epsilon(Tem(E, 1.0), **{promise: 0.99 * share}, prior=prior)


@pytest.mark.parametrize(("most", "reason", "passes"), [(0.99, "unchanged", 6), (0.15, "", 10)])
def test_few_passes_over_all_laws_choose_epsilon(
    monkeypatch: pytest.MonkeyPatch, most: float, reason: str, passes: int
) -> None:
    asked = []

    def counted(mechanism: Mechanism, *args: Any, **options: Any) -> Any:
        asked.append(mechanism.epsilon)
        return best_guess(mechanism, *args, **options)

    monkeypatch.setattr("fastdx.calibration.choice.best_guess", counted)
    tem = Tem(E, 1.0, cover=Cover.nearest(E, 2))
    choice = choose_epsilon(tem, max_unchanged=0.4, min_outputs=1, max_reidentified=most)
    assert choice.reason == (reason or "reidentified")
    assert 1 <= len(asked) == len(set(asked)) <= passes
    # The promise was computed at the very ε, by all laws.
    assert choice.epsilon in asked
    assert reidentification(choice.mechanism).success[1] <= most
    beyond = choose_epsilon(tem, max_unchanged=0.4, min_outputs=1).epsilon
    assert choice.epsilon <= beyond * (1 + 1e-12)


LOOSE = {"max_unchanged": 1.0, "min_outputs": 1}


@pytest.mark.parametrize("prior", [None, "rank", "given", "model"])
def test_epsilon_by_bits(prior: str | None) -> None:
    tem = Tem(E, 1.0, cover=Cover.nearest(E, 4))
    numbers = np.random.default_rng(2).exponential(size=60)
    given_prior: Any = {"given": numbers, "model": NgramPrior.of_frequencies(E, numbers)}.get(
        prior or "", prior
    )
    choice = choose_epsilon(tem, **LOOSE, max_bits=1.5, prior=given_prior)
    known = numbers if prior in ("given", "model") else zipf(60)
    at = bits_of(known, law_of(choice.mechanism))
    above = bits_of(known, law_of(tem.with_epsilon(choice.epsilon * 1.002)))
    assert at <= 1.5 < above
    assert choice.reason == "bits" and choice.word == ""
    assert "at most 1.5 bits a word" in str(choice) and "the bits bind" in str(choice)
    more = choose_epsilon(tem, **LOOSE, max_bits=1.6, prior=given_prior)
    assert more.epsilon > choice.epsilon
    # Another promise may bind before it.
    plain = {"max_unchanged": 0.1, "min_outputs": 1}
    bound = choose_epsilon(Tem(E, 1.0), **plain, max_bits=3.0)
    assert bound.reason == "unchanged"
    assert bound.epsilon == choose_epsilon(Tem(E, 1.0), **plain).epsilon


def test_epsilon_by_words_named_in_sentences() -> None:
    rng = np.random.default_rng(6)
    follows = rng.dirichlet(np.full(60, 0.05), size=60)

    def texts(count: int) -> list[str]:
        made = []
        for _ in range(count):
            word, words = int(rng.integers(60)), []
            for _ in range(12):
                words.append(E.words[word])
                word = int(rng.choice(60, p=follows[word]))
            made.append(" ".join(words))
        return made

    model, attacked = NgramPrior.train(E, texts(400)), texts(60)
    tem = Tem(E, 1.0)
    choices = [choose_epsilon(tem, **LOOSE, max_named=most, texts=attacked, model=model)
               for most in (0.2, 0.4)]  # fmt: skip
    assert choices[0].epsilon < choices[1].epsilon
    for choice, most in zip(choices, (0.2, 0.4), strict=True):
        assert choice.reason == "named" and choice.mechanism.seed is None
        assert f"at most {most:g} of the content words of 60 texts" in str(choice)
        # The same draws, again.
        assert sentence_attack(choice.mechanism._seeded(0), attacked, model).sentence.high <= most
        beyond = tem.with_epsilon(choice.epsilon * 1.3)._seeded(0)
        assert sentence_attack(beyond, attacked, model).sentence.high > most
        # Other draws: 720 words in 60 texts, 0.15 is five standard errors and more.
        assert sentence_attack(choice.mechanism, attacked, model).sentence.mean < most + 0.15
    again = choose_epsilon(tem, **LOOSE, max_named=0.2, texts=attacked, model=model)
    assert again.epsilon == choices[0].epsilon


@pytest.mark.parametrize(
    ("promise", "name"),
    [
        ({"max_bits": 0.0}, "max_bits"),
        ({"max_bits": np.inf}, "max_bits"),
        ({"max_named": 0.0, "texts": ["w1"], "model": 1}, "max_named"),
        ({"max_named": 0.5}, "texts"),
        ({"max_named": 0.5, "texts": ["w1"]}, "model"),
        ({"max_named": 0.5, "texts": "w1", "model": NgramPrior.of_frequencies(E)}, "texts"),
        ({"texts": ["w1"]}, "max_named"),
        ({"max_bits": 1.0, "prior": "zipf"}, "prior"),
    ],
)
def test_wrong_promises_on_releases(promise: dict[str, Any], name: str) -> None:
    with pytest.raises(fastdx.ParameterError, match=name):
        choose_epsilon(Tem(E, 1.0), **LOOSE, **promise)
    # No promise can rest on noise.
    if first := next((key for key in promise if key in ("max_bits", "max_named")), None):
        with pytest.raises(fastdx.ParameterError, match=f"{first}.*no law"):
            choose_epsilon(MultivariateLaplace(E, 1.0), **LOOSE, **promise)


def test_what_the_language_gives_away_cannot_be_promised() -> None:
    texts = ["w1 w2 w3", "w1 w2 w4"] * 20
    model = NgramPrior.train(E, texts)
    # The language alone names w1 and w2.
    with pytest.raises(fastdx.ParameterError, match=r"no ε .* max_named must be at least 0.[789]"):
        choose_epsilon(Tem(E, 1.0), **LOOSE, max_named=0.5, texts=texts, model=model)


def test_the_command_chooses_by_bits_and_by_texts(tmp_path: Path, command: Command) -> None:
    E.save(tmp_path / "e.fdx")
    rng = np.random.default_rng(3)
    lines = [" ".join(rng.choice(E.words, 8)) for _ in range(80)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    base = ["calibrate", "--embedding", str(tmp_path / "e.fdx"), "--max-unchanged", "1",
            "--min-outputs", "1", "-q", "-o", str(tmp_path / "p.html")]  # fmt: skip
    assert "at most 1.5 bits a word" in command(*base, "--max-bits", "1.5").out
    told = command(*base, "--max-named", "0.3", "--texts", tmp_path / "t.txt").out
    assert "of the content words of 40 texts" in told
    assert "--texts" in command(*base, "--max-named", "0.3", code=1).err
    (tmp_path / "one.txt").write_text("secret\n")
    told = command(*base, "--max-named", "0.3", "--texts", tmp_path / "one.txt", code=1).err
    assert "two lines" in told and "secret" not in told


def test_what_is_wrong_is_named() -> None:
    tem, wrong = Tem(E, 1.0), fastdx.ParameterError
    priors: list[Any] = [[1.0], -np.ones(60), np.zeros(60), "zipf"]
    refused(
        *((wrong, "prior", partial(reidentification, tem, prior)) for prior in priors),
        *((wrong, "guesses", partial(reidentification, tem, None, asked)) for asked in (0, [])),
        (fastdx.InputTypeError, "", lambda: reidentification("tem")),  # type: ignore[arg-type]
    )
