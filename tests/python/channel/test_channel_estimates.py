"""Estimates of bits beside exact numbers, and the built-in model of English."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tools import english_prior

import fastdx
from fastdx import Cover, Embedding, FiniteLaw, MultivariateLaplace, NeighborResponse, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.lab.attacks import drawn_bits
from helpers import ROOT
from helpers.spaces import numbered

RNG = np.random.default_rng(9)


def clustered(words: int, dim: int, seed: int) -> Embedding:
    """Words in clusters of different sizes, some of them alone."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(max(2, words // 20), dim)) * 3
    vectors = centers[rng.zipf(1.6, words) % len(centers)] + rng.normal(size=(words, dim)) * 0.4
    return numbered(vectors)


def some_channels(count: int, words: int) -> Iterator[Channel]:
    """Small channels, every one of its own space."""
    for seed in range(count):
        space = clustered(words, 1 + seed % 5, 100 + seed)
        epsilon = (0.5, 1.5, 4.0, 10.0)[seed // 5 % 4]
        cover = Cover.nearest(space, 4) if seed % 3 == 0 else None
        yield Channel.of(Tem(space, epsilon, cover=cover))


def test_bits_lie_in_their_intervals_as_often_as_promised() -> None:
    """At 99.73% or more, of 400 channels: ten misses have a probability below 1e-6."""
    missed = 0
    for at, channel in enumerate(some_channels(400, 120)):
        prior = RNG.random(120) ** 8 if at % 2 else None
        bits = channel.bits(prior, sample=40)
        missed += not bits.low <= channel.bits(prior) <= bits.high
        assert bits.sampled == 40 and bits.low <= bits <= bits.high and " to " in str(bits)
        if at % 20 == 0:
            # More words say more: an interval that holds everything would be no use.
            more = channel.bits(prior, sample=110)
            assert more.high - more.low < 0.8 * (bits.high - bits.low) + 0.02
    assert missed < 10


def test_bits_of_guarantees_cost_no_more_than_20_000_words() -> None:
    space = numbered(RNG.normal(size=(21_000, 2)))
    response = NeighborResponse(space, 8.0, cover=1)
    found = response.guarantee.with_bits().to_dict()["bits"]
    assert 512 <= found["sampled"] <= 20_000**2 // 21_000
    assert not found["exact"]
    assert 0 < found["low"] < found["value"] < found["high"] < found["entropy"]
    assert found["high"] - found["low"] < 0.5
    bits = response.bits()
    assert bits == found["value"] and bits.sampled == found["sampled"]
    assert f"estimated from {found['sampled']:,} words" in str(response.guarantee.with_bits())


def line(epsilon: float, words: int = 30) -> tuple[MultivariateLaplace, np.ndarray]:
    """Noise on a line, and its law: nobody needs to estimate this one, so it judges."""
    places = np.sort(np.random.default_rng(3).normal(size=words) * 2)
    space = numbered(places)
    middle = np.concatenate([[-np.inf], (places[1:] + places[:-1]) / 2, [np.inf]])
    x = middle[None, :] - places[:, None]
    cumulative = np.where(x < 0, 0.5 * np.exp(epsilon * x), 1 - 0.5 * np.exp(-epsilon * x))
    return MultivariateLaplace(space, epsilon), np.diff(cumulative, axis=1)


def test_bits_from_draws_lie_around_those_of_the_law() -> None:
    for epsilon in (0.5, 2.0, 8.0):
        noise, law = line(epsilon)
        true = Channel.of(FiniteLaw(noise.space, law)).bits()
        gaps = []
        for draws in (50, 1000):
            bits = drawn_bits(noise, draws)
            # Bounds in expectation, of 30 words times so many draws each.
            assert bits.low - 0.03 <= true <= bits.high + 0.03
            assert bits.low <= bits <= bits.high and bits.sampled == draws
            gaps.append(bits.high - bits.low)
        assert 0 < gaps[1] < 0.5 * gaps[0]
    with pytest.raises(fastdx.ParameterError, match="over cells"):
        Channel.of(noise)
    with pytest.raises(fastdx.ParameterError, match="draws"):
        drawn_bits(noise, 1)


def test_rows_are_passed_over_once_where_all_columns_fit() -> None:
    words = 200
    law = RNG.dirichlet(np.ones(words), words)
    space = numbered(RNG.normal(size=(words, 2)))
    asked: list[int] = []

    def row(word: int) -> np.ndarray:
        asked.append(word)
        return law[word]

    mechanism = FiniteLaw(space, row)
    for bytes_, passes in ((1 << 20, 1), (1 << 14, 12)):
        channel = Channel.of(mechanism, cache_bytes=bytes_)
        asked.clear()
        for y in range(12):
            np.testing.assert_allclose(channel.likelihood(y), law[:, y], rtol=1e-12)
        rows = len(asked)
        assert rows >= words
        channel.likelihood(50)
        assert (len(asked) == rows) == (passes == 1), "the whole law is kept where it fits"


class TestEnglish:
    def test_some_of_its_words_in_any_order(self) -> None:
        whole = NgramPrior.english()
        words = ["states", "the", "united", "of"]
        some = Embedding(words, np.zeros((4, 1)) + np.arange(4)[:, None])
        prior = NgramPrior.english(some)
        p = whole.next(["united"])[whole.space.ids(words)]
        np.testing.assert_allclose(prior.next(["united"]), p / p.sum(), rtol=1e-4)
        left = 1 - p.sum() * (1 - whole.unknown_next(["united"]))
        assert abs(prior.unknown_next(["united"]) - left) < 1e-6
        with pytest.raises(fastdx.ParameterError, match="1 of 2"):
            NgramPrior.english(Embedding(["the", "xyzzyx"], [[0.0], [1.0]]))

    def test_it_predicts_english_better_than_ranks(self, shared: Path) -> None:
        rank = NgramPrior.of_frequencies(Embedding.default())
        english = NgramPrior.english()
        lines = (shared / "text" / "snips.validate.jsonl").read_text().splitlines()
        snips = [json.loads(one)["text"] for one in lines if one.strip()]
        with gzip.open(shared / "text" / "imdb.val.jsonl.gz", "rt") as file:
            imdb = [json.loads(next(file))["text"] for _ in range(100)]
        for texts in (snips, imdb):
            assert english.perplexity(texts) < 0.75 * rank.perplexity(texts)

    def test_every_source_stands_in_the_notice(self) -> None:
        notice = (ROOT / "NOTICE").read_text()
        assert len(english_prior.SOURCES) == 6
        assert (ROOT / "data" / "english.ngrams").stat().st_size <= 3_000_000
        for source in english_prior.SOURCES:
            assert all(part in notice for part in re.split("==?", source.package)), source.package
