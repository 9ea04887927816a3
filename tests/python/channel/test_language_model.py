"""What the tables of neural attackers say: which sentences are attacked, and who is named."""

from types import SimpleNamespace

import numpy as np
import pytest
from experiments import data, language_model, readable_peers, tables
from experiments.sentences import sentences

from fastdx import Embedding
from fastdx.channel import NgramPrior


def test_sentences_are_of_known_words_and_have_no_marks_inside() -> None:
    e = Embedding(["the", "film", "was", "good", "and", "long", "it's", "not"], np.eye(8))
    texts = ["The film was good and long.<br /><br />It's not the film, it was the film and good!",
             "The film was long.", "Bad. The film was not good and long? It's the film.",
             "The film was strange and not good."]  # fmt: skip
    found = {s.review: s for s in sentences(texts, e)}
    assert set(found) == {0, 2}
    assert [e.words[w] for w in found[0].words] == ["the", "film", "was", "good", "and", "long"]
    assert found[0].mark == "." and found[2].mark == "?"
    again = list(sentences(texts, e))
    assert again == list(sentences(texts, e))


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
    place = {"truth": 1, "grams": 0.25, "parts": [np.log([0.5, 0.25]).tolist(), [0.0, 4.0]]}
    missed = {"truth": -1, "grams": 2**-6, "parts": place["parts"]}
    weights = readable_peers.chosen_weights([*[[place] * 9] * 3, [missed]])
    assert weights[1] > 0.3
    found, surprise = readable_peers.weighed([place, missed], weights)
    scores = np.exp(weights @ np.array(place["parts"]))
    own = 6 - np.log2(0.75 * scores[1] / scores.sum())
    assert found == 1 and surprise == pytest.approx(own, abs=1e-3)
    assert readable_peers.weighed([place, missed], np.array([1.0, 0.0])) == (0, 8.0)
    policy = "Tem, 3.3 bits"
    kept = {"epsilon": {policy: 4.5}, "bits": {policy: 3.3}, "share": 0.6, "particles": 8,
            "entropy": {"neural": 6.0, "trigrams": 6.6, "mix": 5.7}, "weights": [1.0, 0.5],
            "seconds": 9.0, "columns": language_model.published()["columns"],
            "attacks": {policy: [[i, 9, 2, 0, 1, i % 2, found, 8.0, surprise]
                                 for i in range(6)]}}  # fmt: skip
    monkeypatch.setattr(language_model, "published", lambda: kept)
    run = tables.Run(data.Sample(), "language-model")
    (row,) = language_model.named(run).rows
    assert run.seconds == 9
    assert row[:5] == [policy, "4.50", "3.30", "6", "12"] and row[8] == "6"
    assert row[9] == "0.250 [0.031, 0.469]" and row[10] == "0.500 [0.500, 0.500]"
    assert row[11].startswith("+0.250 [")
    assert row[-2:] == ["4.00", f"{own / 2:.2f}"]


def test_rivals_are_the_likeliest_content_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable_peers, "RIVALS", 3)
    content = np.array([True, True, True, True, True, False])
    words, rng = np.array([1, 5, 4]), np.random.default_rng(1)
    posterior, gains = rng.dirichlet(np.ones(6), 3), rng.normal(size=(3, 6))
    found = readable_peers.rivals(posterior, gains, words, content)
    for place, at in zip(found, (0, 2), strict=True):  # the second word is none of content
        best = np.argsort(-np.where(content, posterior[at], -1.0))[:3]
        assert place["parts"] == [np.log(posterior[at, best]).tolist(), gains[at, best].tolist()]
        assert place["grams"] == posterior[at, words[at]]
        truth = place["truth"]
        assert best[truth] == words[at] if truth >= 0 else words[at] not in best


def test_the_attacker_mixes_the_base_measure_with_bigrams(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Embedding(["a", "b", "c"], np.eye(3))
    base, grams = (NgramPrior.train(space, ["a b c b a. c a b."] * 3, k) for k in (3, 2))
    model = SimpleNamespace(log_next=lambda prefix: np.log(base.next(prefix)))
    monkeypatch.setattr(readable_peers, "neural", lambda *_: SimpleNamespace(model=model))
    monkeypatch.setattr(readable_peers, "reader", lambda *_: SimpleNamespace(prior=grams))
    mixed, plain = readable_peers.attacker.__wrapped__(SimpleNamespace(made_up=False), space)
    for prefix in ((), (1,), (2, 0)):
        words = [space.words[i] for i in prefix]
        assert np.allclose(plain(prefix), grams.next(words))
        expected = 0.65 * base.next(words) + 0.35 * grams.next(words)
        assert np.allclose(mixed(prefix), expected, rtol=1e-6)
