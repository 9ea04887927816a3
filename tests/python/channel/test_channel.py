"""Tests the channel against laws, against all texts written out, and against its own promises."""

import json
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import (
    Cover,
    Embedding,
    FiniteLaw,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
)
from fastdx.calibration import choose_epsilon
from fastdx.channel import Bits, Channel, NgramPrior, Posterior
from helpers.errors import refused
from helpers.laws import bits_of, law_of, zipf

RNG = np.random.default_rng(5)
WORDS = [f"w{i}" for i in range(60)]
E = Embedding(WORDS, RNG.normal(size=(60, 3)))
TINY = Embedding(list("abcde"), RNG.normal(size=(5, 2)))


def texts(count: int, words: list[str], seed: int = 0) -> list[str]:
    """Sentences in which a word is often followed by one of two."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        at = int(rng.integers(len(words)))
        sentence = [words[at]]
        for _ in range(int(rng.integers(3, 12))):
            follows = (3 * at + int(rng.integers(2))) % len(words)
            at = follows if rng.random() < 0.7 else int(rng.integers(len(words)))
            sentence.append(words[at])
        made.append(" ".join(sentence))
    return made


def mechanisms() -> list[fastdx.Mechanism]:
    law = RNG.random((60, 60)) ** 4
    law[law < 0.01] = 0
    return [
        Tem(E, 3.0),
        Tem(E, 3.0, gamma=1.0, exclude=["w3", "w50"]),
        Tem(E, 4.0, cover=5),
        Tem(E, 4.0, cover=Cover.nearest(E, 4, exclude=["w7"]).weighted(RNG.random(60) + 0.5)),
        Tem(E, 3.0, remap=3),
        NeighborResponse(E, 3.0, cover=4),
        FiniteLaw(E, law),
        FiniteLaw(E, law, remap=2, exclude=["w1"]),
        Tem(Embedding(WORDS, RNG.normal(size=(60, 8)), metric="angular"), 5.0),
    ]


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda m: type(m).__name__)
def test_numbers_are_those_of_the_law_that_is_drawn(mechanism: fastdx.Mechanism) -> None:
    """Small laws of every kind: src/channel/tests.rs. Sentences about bits: src/guarantee."""
    channel, law, ranks = Channel.of(mechanism), law_of(mechanism), zipf(60)
    columns = np.array([channel.likelihood(y) for y in range(60)]).T
    np.testing.assert_allclose(columns, law, rtol=1e-12, atol=0)
    for prior, pi in ((None, ranks), ("rank", ranks), (np.ones(60), np.ones(60) / 60)):
        output = pi @ law
        bits = channel.bits(prior)
        assert bits.low == bits == bits.high == pytest.approx(bits_of(pi, law), abs=1e-9)
        y = int(output.argmax())
        posterior = channel.posterior(mechanism.space.words[y], prior)
        np.testing.assert_allclose(posterior, pi * law[:, y] / output[y], rtol=1e-10, atol=1e-15)
    assert abs(channel.capacity - np.log2(law.max(axis=0).sum())) < 1e-9
    guarantee = mechanism.guarantee.with_bits()
    found = guarantee.to_dict()["bits"]
    assert mechanism.bits() == found["value"] == found["low"] == found["high"]
    # The channel takes a prior in numbers, which numpy has normalised.
    assert mechanism.bits() == pytest.approx(channel.bits(), rel=1e-13)
    assert found["entropy"] == pytest.approx(-(ranks * np.log2(ranks)).sum())
    assert (found["prior"], found["exact"], found["why"]) == ("1/(rank + 2.7)", True, None)
    assert mechanism.guarantee.to_dict()["bits"] is None, "only where it was asked for"
    again = pickle.loads(pickle.dumps(guarantee))
    assert str(again) == str(guarantee) != str(mechanism.guarantee)
    assert again.to_dict() == json.loads(again.to_json())
    bits = pickle.loads(pickle.dumps(mechanism.bits()))
    assert isinstance(bits, Bits) and (bits, bits.low, bits.sampled) == (found["value"], bits, 0)


def test_no_bits_are_said_of_noise_and_of_seeds() -> None:
    for m, why in ((MultivariateLaplace(E, 3.0), "law"), (Tem(E, 2.0, seed=1), "SEEDED")):
        found = m.guarantee.with_bits().to_dict()["bits"]
        assert why in found["why"] and found["value"] is None and not found["exact"]
        with pytest.raises(fastdx.ParameterError, match=why):
            m.bits()


def test_what_cannot_be_computed_is_refused_with_the_reason() -> None:
    channel, prior = Channel.of(Tem(E, 3.0)), NgramPrior.of_frequencies(E)
    with pytest.raises(fastdx.ParameterError, match=r"text.*word 1") as told:
        channel.decode("w1 secret w2", prior)
    assert "secret" not in str(told.value)
    other = NgramPrior.of_frequencies(TINY)
    refused(
        (fastdx.ParameterError, "over cells", lambda: Channel.of(MultivariateLaplace(E, 3.0))),
        (fastdx.InputTypeError, "Mechanism", lambda: Channel.of(E)),  # type: ignore[arg-type]
        (fastdx.ParameterError, "prior", lambda: channel.bits([1.0])),
        (fastdx.ParameterError, "prior", lambda: channel.bits([-1.0] * 60)),
        (fastdx.ParameterError, "prior", lambda: channel.bits(np.zeros(60))),
        (fastdx.ParameterError, "sample", lambda: channel.bits(sample=1)),
        (fastdx.ParameterError, "output", lambda: channel.likelihood(60)),
        (fastdx.ParameterError, "prior", lambda: channel.decode("w1", other)),
        (fastdx.InputTypeError, "NgramPrior",
         lambda: channel.decode("w1", "prior")),  # type: ignore[arg-type]
        (fastdx.ParameterError, "i must", lambda: channel.decode("w1", prior).marginals(1)),
        (fastdx.ParameterError, "order", lambda: NgramPrior.train(E, [], 4)),
        (fastdx.ParameterError, "freq", lambda: NgramPrior.train(E, [], 2, frequencies=[1.0])),
        (fastdx.ParameterError, "unknown", lambda: NgramPrior.of_frequencies(E, unknown=1.0)),
        (fastdx.InputTypeError, "texts", lambda: NgramPrior.train(E, "one text", 2)),
    )  # fmt: skip


def drawn(prior: NgramPrior, count: int, seed: int) -> list[list[str]]:
    """Sentences from the prior itself."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        sentence: list[str] = []
        for _ in range(8):
            p = prior.next(sentence)
            sentence.append(WORDS[rng.choice(60, p=p / p.sum())])
        made.append(sentence)
    return made


@pytest.fixture(scope="module")
def attacked() -> tuple[list[list[str]], list[Posterior]]:
    """Sentences and their posteriors, where the prior is right."""
    prior = NgramPrior.train(E, texts(2000, WORDS), 2)
    sentences = drawn(prior, 500, 1)
    tem = Tem(E, 3.0, seed=1)
    channel = Channel.of(tem)
    return sentences, [channel.decode(tem.privatize_tokens(s), prior) for s in sentences]


def test_no_decoder_names_more_than_the_release_and_one_that_peeks_is_convicted(
    attacked: tuple[list[list[str]], list[Posterior]],
) -> None:
    sentences, posteriors = attacked
    rng = np.random.default_rng(2)

    def excess(decoder: Any) -> float:
        """Words named beyond what the release allows, in standard deviations."""
        hits, most, variance = 0.0, 0.0, 0.0
        for written, posterior in zip(sentences, posteriors, strict=True):
            told = decoder(posterior, written)
            hits += sum(a == b for a, b in zip(told, written, strict=True))
            most += posterior.certainty.sum()
            variance += (posterior.certainty * (1 - posterior.certainty)).sum()
        return float((hits - most) / np.sqrt(variance))

    def peeking(posterior: Posterior, written: list[str]) -> list[str]:
        likely = [WORDS[i] for i in posterior.best]
        return [w if rng.random() < 0.15 else b for w, b in zip(written, likely, strict=True)]

    assert excess(lambda p, _: [WORDS[i] for i in p.best]) < 4
    assert excess(lambda p, _: p.viterbi()) < 4
    assert excess(lambda p, _: p.sample(1, seed=3)[0]) < 4
    assert excess(peeking) > 6


def test_texts_keep_what_is_between_their_words() -> None:
    tem = Tem(E, 3.0, skip=["Zürich"], oov="keep", seed=2)
    prior = NgramPrior.train(E, texts(50, WORDS), 2)
    release = tem.privatize("  w1 (w2), Zürich?\n\nw3;nobody -- w4.")
    posterior = Channel.of(tem).decode(release, prior)
    assert posterior.written.tolist() == [False, False, True, False, True, False]
    assert posterior.best.tolist()[2] == -1
    for text in [*posterior.sample(20, seed=1), posterior.viterbi()]:
        assert isinstance(text, str)
        assert text.startswith("  w")
        assert ", Zürich?\n\nw" in text
        assert ";nobody -- w" in text
        assert text.endswith(".")
    assert posterior.sample(2, seed=1) == posterior.sample(2, seed=1)
    masked = Tem(E, 3.0, oov="mask").privatize("w1 nobody w2")
    assert Channel.of(Tem(E, 3.0, oov="mask")).decode(masked, prior).unknown[1] == 1
    empty = Channel.of(tem).decode("...", prior)
    assert len(empty) == 0
    assert empty.viterbi() == "..."
    assert np.isnan(empty.expected_right)


def test_threads_may_share_a_channel() -> None:
    prior = NgramPrior.train(E, texts(50, WORDS), 2)
    channel = Channel.of(Tem(E, 3.0))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: channel.decode("w1 w2 w3", prior).log_evidence, range(32)))
    assert len(set(found)) == 1


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda m: type(m).__name__)
def test_deniable_words_are_those_of_the_law(mechanism: fastdx.Mechanism) -> None:
    law = law_of(mechanism)
    for factor in (1.0, 1.7, 20.0):
        found = Channel.of(mechanism).deniable(factor)
        for y in range(len(WORDS)):
            column = law[:, y]
            # Two words whose probabilities differ by a rounding are alike for either count.
            likely = column.max() / factor
            wanted = [int((column >= likely * edge).sum()) for edge in (1 + 1e-12, 1 - 1e-12)]
            assert (found[y] == 0) if column.max() == 0 else wanted[0] <= found[y] <= wanted[1]
    with pytest.raises(fastdx.ParameterError, match="factor must be at least 1"):
        Channel.of(mechanism).deniable(0.5)


def test_an_epsilon_for_deniable_words() -> None:
    tem = Tem(E, 1.0)
    choice = choose_epsilon(tem, min_deniable=5, factor=3.0, words=WORDS[:3])
    least = [int(Channel.of(tem.with_epsilon(choice.epsilon * x)).deniable(3.0).min())
             for x in (1, 1.01)]  # fmt: skip
    assert least[0] >= 5 > least[1]
    assert (choice.reason, choice.word) == ("deniable", "")


def test_a_bag_is_decoded_without_an_order() -> None:
    prior = NgramPrior.train(E, texts(300, WORDS), order=2)
    channel = Channel.of(Tem(E, 3.0))
    bag = Counter({"w9": 2, "w3": 1, "w30": 1})
    wanted = sum(n * channel.posterior(y, prior.frequencies) for y, n in bag.items())
    found = channel.decode(bag, prior)
    assert found.expected_counts() == pytest.approx(wanted, abs=1e-5)
    assert len(found) == 4
    # As a text, a bag has an order that nobody wrote.
    ordered = channel.decode(" ".join(sorted(bag.elements())), prior).expected_counts()
    assert np.abs(ordered - wanted).max() > 0.01
    with pytest.raises(fastdx.ParameterError, match="count of word 0"):
        channel.decode({"w9": -1}, prior)
