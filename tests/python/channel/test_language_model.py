"""The neural attacker: words from tokens, on an engine that is made up; and what the table says."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from experiments import data, language_model, smollm, tables
from experiments.smc import Numbers, decode
from numpy.typing import NDArray

from fastdx import Embedding, Tem
from fastdx.channel import Channel, NgramPrior

PIECES = [" a", " b", " c", "x", "y", ".", ",", "\n", "", " 7"]
WORDS = ["a", "ax", "axy", "b", "by", "c"]
SPACE = Embedding(WORDS, np.random.default_rng(4).normal(size=(6, 2)))
PRIOR = NgramPrior.train(SPACE, ["a ax b by c. axy b a c b. by ax a b c a."] * 3, 2)
CHANNEL = Channel.of(Tem(SPACE, 1.0))
SHARE = 0.6


class MadeUp:
    """An engine: tokens behind every prefix are as likely as a seed made from it has it."""

    count = len(PIECES)

    def __init__(self) -> None:
        self.sequences: dict[int, list[int]] = {0: []}
        self.asked = 0

    def pieces(self) -> list[str]:
        return PIECES

    def tokens(self, text: str, *, start: bool = False) -> list[int]:
        found = []
        while text:
            token = next(i for i, p in enumerate(PIECES) if p and text.startswith(p))
            found.append(token)
            text = text[len(PIECES[token]) :]
        return found

    def spelled(self, words: list[str]) -> list[list[int]]:
        return [self.tokens(f" {word}") for word in words]

    def copy(self, source: int, target: int) -> None:
        assert source in self.sequences and target not in self.sequences
        self.sequences[target] = list(self.sequences[source])

    def forget(self, sequence: int) -> None:
        self.sequences.pop(sequence, None)

    def after(self, tokens: list[int]) -> Numbers:
        found: Numbers = np.random.default_rng([9, *tokens]).dirichlet(np.full(self.count, 0.7))
        return found

    def run(self, tokens: list[tuple[int, int, int, bool]]) -> NDArray[np.float32]:
        found = []
        for token, place, sequence, want in tokens:
            self.asked += 1
            held = self.sequences.setdefault(sequence, [])
            assert len(held) == place
            held.append(token)
            if want:
                found.append(np.log(self.after(held)))
        return np.array(found, dtype=np.float32)


def neural(count: int) -> smollm.NeuralWords:
    engine: Any = MadeUp()
    spelling = smollm.Spelling(engine, WORDS)
    found = smollm.NeuralWords(engine, spelling, PRIOR, share=SHARE, prompt=" c.", count=count)
    found.mark = "."
    return found


def by_hand(text: tuple[int, ...], shown: bool) -> float:
    """Pr[sentence] under the mix, by its definition."""
    engine = MadeUp()
    begins, over = [0, 1, 2], [0, 1, 2, 5, 6, 7, 8, 9]
    prefix = engine.tokens(" c.")
    total = 1.0
    for place, w in enumerate(text):
        now = engine.after(prefix)
        tokens = engine.tokens(f" {WORDS[w]}")
        model = now[tokens[0]] / now[begins].sum()
        scale = now[begins].sum() / now[over].sum() if shown else 1.0
        for i, token in enumerate(tokens):
            if i:
                model *= engine.after(prefix)[token]
            prefix = [*prefix, token]
        model *= engine.after(prefix)[over].sum()
        grams = PRIOR.next([WORDS[u] for u in text[:place]])[w]
        total *= scale * (SHARE * model + (1 - SHARE) * grams)
    last = engine.after(prefix)
    return total * (last[5] / last[over].sum() if shown else 1.0)


def test_words_are_products_of_tokens() -> None:
    likelihoods = np.array([CHANNEL.likelihood(y) for y in ("ax", "by", "a")])
    texts = list(itertools.product(range(6), repeat=3))
    joint = np.array([by_hand(t, True) * np.prod([likelihoods[i, w] for i, w in enumerate(t)])
                      for t in texts])  # fmt: skip
    model = neural(6**3)
    ones = np.ones_like(likelihoods)
    found = decode(model, likelihoods, ones, 6**3, np.random.default_rng(0))
    assert found.log_evidence == pytest.approx(np.log(joint.sum()), abs=1e-5)
    order = [texts.index(tuple(path)) for path in found.paths.tolist()]
    assert sorted(order) == list(range(6**3))
    assert np.allclose(found.weights, joint[order] / joint.sum(), rtol=1e-4)
    few, rng = neural(5), np.random.default_rng(1)
    runs = np.array([decode(few, likelihoods, ones, 5, rng).log_evidence for _ in range(1500)])
    ratio = np.exp(runs) / joint.sum()
    # Six standard errors: a false alarm in 10⁸.
    assert abs(ratio.mean() - 1) < 6 * ratio.std() / len(ratio) ** 0.5
    assert ratio.std() > 0.01


def test_prefixes_share_what_they_have_in_common() -> None:
    model = neural(4)
    engine: Any = model.engine
    model.begin()
    before = engine.asked
    model.extend(np.array([0, 0, 0]), np.array([0, 2, 4]))  # a, axy, by
    assert engine.asked - before == 1 + 3 + 2
    model.extend(np.array([1, 1, 2, 0]), np.array([3, 5, 5, 3]))
    held = sorted(engine.sequences.values())
    spelled = engine.tokens
    assert held == sorted([spelled(" c."), spelled(" c. axy b"), spelled(" c. axy c"),
                           spelled(" c. by c"), spelled(" c. a b")])  # fmt: skip


def test_what_is_said_of_plain_words() -> None:
    texts = [[0, 2, 5], [4], [1, 1, 3, 0], [2, 5], [5]]
    model = neural(3)
    know = SimpleNamespace(attacked=[language_model.Sentence(0, words, ".") for words in texts])
    by_model, grams = language_model.plain_words(know, model, range(5))  # type: ignore[arg-type]
    assert len(by_model) == len(grams) == 11
    every = [PRIOR.next([WORDS[u] for u in s.words[:i]])[w]
             for s in know.attacked for i, w in enumerate(s.words)]  # fmt: skip
    assert np.allclose(sorted(grams), sorted(every), rtol=1e-6)
    mixed = SHARE * by_model + (1 - SHARE) * grams
    whole = np.prod([by_hand(tuple(s.words), False) for s in know.attacked])
    assert np.prod(mixed) == pytest.approx(whole, rel=1e-4)


def test_sentences_are_of_known_words_and_have_no_marks_inside() -> None:
    e = Embedding(["the", "film", "was", "good", "and", "long", "it's", "not"], np.eye(8))
    texts = ["The film was good and long.<br /><br />It's not the film, it was the film and good!",
             "The film was long.", "Bad. The film was not good and long? It's the film.",
             "The film was strange and not good."]  # fmt: skip
    found = {s.review: s for s in language_model.sentences(texts, e)}
    assert set(found) == {0, 2}
    assert [e.words[w] for w in found[0].words] == ["the", "film", "was", "good", "and", "long"]
    assert found[0].mark == "." and found[2].mark == "?"
    again = list(language_model.sentences(texts, e))
    assert again == list(language_model.sentences(texts, e))


def test_intervals_are_of_sentences() -> None:
    rng = np.random.default_rng(6)
    content = rng.integers(3, 9, 400).astype(float)
    rates = rng.beta(2, 5, 400)  # words of a sentence go together
    named = rng.binomial(content.astype(int), rates).astype(float)
    found = language_model.share_named(named, content)
    drawn = rng.integers(0, 400, (4000, 400))
    boot = named[drawn].sum(axis=1) / content[drawn].sum(axis=1)
    assert found.mean == pytest.approx(named.sum() / content.sum())
    assert found.high - found.low == pytest.approx(2 * 1.96 * boot.std(), rel=0.1)


def test_what_is_shown_is_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # Trigrams mislead, and the gain of the neural model tells the truth.
    place = {"truth": 1, "trigrams": 0.25, "parts": [np.log([0.5, 0.25]).tolist(), [0.0, 4.0]]}
    missed = {"truth": -1, "trigrams": 2**-6, "parts": place["parts"]}
    held = [{"sentence": i, "places": [place] * 9} for i in range(3)]
    weights = language_model.chosen_weights([*held, {"sentence": 50, "places": [missed]}])
    assert weights[1] > 0.3
    found, *surprise = language_model.weighed({"places": [place, missed]}, weights)
    scores = np.exp(weights @ np.array(place["parts"]))
    own = 6 - np.log2(0.75 * scores[1] / scores.sum())
    assert found == 1 and surprise == pytest.approx([8, own], abs=1e-3)
    policy = str(language_model.POLICIES[0])
    kept = {"epsilon": {policy: 4.5}, "bits": {policy: 3.3}, "share": 0.6, "particles": 8,
            "entropy": {"neural": 6.0, "trigrams": 6.6, "mix": 5.7}, "weights": [1.0, 0.5],
            "seconds": 9.0, "columns": language_model.COLUMNS,
            "attacks": {policy: [[i, 9, 2, 0, 1, i % 2, found, *surprise]
                                 for i in range(6)]}}  # fmt: skip
    monkeypatch.setattr(language_model, "published", lambda: kept)

    class Real(data.Sample):
        made_up = False

    run = tables.Run(Real(), "language-model")
    (row,) = language_model.named(run).rows
    assert run.seconds == 9
    assert row[:5] == [policy, "4.50", "3.30", "6", "12"] and row[8] == "6"
    assert row[9] == "0.250 [0.031, 0.469]" and row[10] == "0.500 [0.500, 0.500]"
    assert row[11].startswith("+0.250 [")
    assert row[-2:] == ["4.00", f"{own / 2:.2f}"]


def test_rivals_are_the_likeliest_content_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "RIVALS", 3)
    content = np.array([True, True, True, True, True, False])
    words, rng = np.array([1, 5, 4]), np.random.default_rng(1)
    posterior, gains = rng.dirichlet(np.ones(6), 3), rng.normal(size=(3, 6))
    found = language_model.rivals(posterior, gains, words, content)
    for place, at in zip(found, (0, 2), strict=True):  # the second word is none of content
        best = np.argsort(-np.where(content, posterior[at], -1.0))[:3]
        assert place["parts"] == [np.log(posterior[at, best]).tolist(), gains[at, best].tolist()]
        assert place["trigrams"] == posterior[at, words[at]]
        truth = place["truth"]
        assert best[truth] == words[at] if truth >= 0 else words[at] not in best
