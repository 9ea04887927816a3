"""Counts: intervals that hold the truth, bounds over all words, the update beside plain numpy."""

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import fastdx
from fastdx import Embedding, FiniteLaw, Mechanism, NeighborResponse, Tem
from fastdx.channel import Channel, NgramPrior
from fastdx.counts import Estimator, plan
from fastdx.counts.estimator import discovered, indicator
from fastdx.lab import laws
from helpers.errors import refused
from helpers.laws import law_of as rows_of
from helpers.laws import zipf

RNG = np.random.default_rng(7)
SIZE = 80
WORDS = [f"w{i}" for i in range(SIZE)]
E = Embedding(WORDS, RNG.normal(size=(SIZE, 3)))
LEXICON = ["w3", "w10", "w11", "w40"]
TOPICS = Embedding(WORDS, RNG.normal(size=(SIZE, 3)) + 20 * np.eye(3)[np.arange(SIZE) % 3])
"""Words of three topics far apart. Covers hide the word and leave the topic."""
TOPIC = WORDS[1::3]
COLLECTIONS = 200


def documents(count: int, rng: np.random.Generator, lean: float = 0.0) -> list[list[int]]:
    """Documents of unlike lengths, each leaning to words of its own."""
    base = zipf(SIZE)
    base[[3, 10]] *= 1 + lean
    made = []
    for _ in range(count):
        own = base * rng.gamma(0.7, size=SIZE)
        made.append(rng.choice(SIZE, int(rng.integers(5, 60)), p=own / own.sum()).tolist())
    return made


def texts(found: list[list[int]]) -> list[str]:
    return [" ".join(WORDS[i] for i in document) for document in found]


def law_of(mechanism: Mechanism) -> np.ndarray[Any, Any]:
    """The law as releases have it: a row a word, shown words as they are; unknown words last."""
    channel = Channel.of(mechanism)
    law = rows_of(mechanism)
    for word in mechanism.skip:
        if word in mechanism.space:
            at = int(mechanism.space.ids([word])[0])
            law[at] = np.arange(len(law)) == at
    if mechanism.oov == "random":
        law = np.vstack([law, channel._core.unknown_law()])
    return law


MECHANISMS: dict[str, Mechanism] = {
    "tem": Tem(E, 4.0, seed=1),
    "cover": Tem(TOPICS, 0.7, cover=4, balance=0.1, seed=1),
    "staircase": NeighborResponse(TOPICS, 5.0, cover=8, seed=1),
    "randomized response": FiniteLaw(E, laws.randomized_response(E, 3.0).matrix(), seed=1),
    "consistent": Tem(E, 4.0, consistent=True, oov="mask", seed=1),
}


def least_covered(tries: int, share: float, alarm: float) -> int:
    """The largest count at which such a share, or a larger one, raises an alarm so rarely."""
    return int(stats.binom.ppf(alarm, tries, share)) - 1


@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_hold_the_share_in_95_of_100_collections(name: str) -> None:
    """Fails if the true share of intervals that hold is .95, in one of a million runs."""
    mechanism = MECHANISMS[name]
    channel = Channel.of(mechanism)
    rng = np.random.default_rng(11)
    lexicon = TOPIC if mechanism.space is TOPICS else LEXICON
    wanted = indicator(channel, lexicon)
    held = shown = 0
    for _ in range(COLLECTIONS):
        found = documents(60, rng)
        share = Estimator(channel).add(mechanism.privatize(texts(found))).share(lexicon)
        truth = float(np.mean(wanted[np.concatenate(found).astype(int)]))
        held += share.low <= truth <= share.high
        shown += share.high - share.low < 1
    assert held > least_covered(COLLECTIONS, 0.95, 1e-6), held
    # An interval from 0 to 1 would hold as well.
    assert shown > 0.9 * COLLECTIONS


def test_intervals_hold_what_documents_are_drawn_from() -> None:
    """Nearly no bias and nearly no noise: what is left is how documents vary."""
    tem = Tem(E, 60.0, oov="mask", seed=2)
    channel = Channel.of(tem)
    rng = np.random.default_rng(12)
    own = zipf(SIZE) * rng.gamma(0.7, size=(100_000, SIZE))
    truth = float((own @ indicator(channel, LEXICON) / own.sum(axis=1)).mean())
    held = 0
    for _ in range(COLLECTIONS):
        share = Estimator(channel).add(tem.privatize(texts(documents(60, rng)))).share(LEXICON)
        assert share.bias < 1e-3
        held += share.low <= truth <= share.high
    assert least_covered(COLLECTIONS, 0.95, 1e-6) < held


@pytest.mark.parametrize("mechanism", [
    Tem(E, 3.0), Tem(E, 3.0, oov="mask"), Tem(E, 3.0, skip=["w3", "w20", "other"]),
    Tem(E, 4.0, cover=3, exclude=["w10"]), Tem(E, 3.0, remap=2),
])  # fmt: skip
def test_the_bias_is_the_largest_over_all_words(mechanism: Mechanism) -> None:
    channel = Channel.of(mechanism)
    wanted = indicator(channel, LEXICON)
    law = law_of(mechanism)
    target = np.append(wanted, [0] * (len(law) - SIZE))
    few, many = (Estimator(channel)._rule(wanted, words) for words in (100, 1e9))
    for rule in (few, many):
        assert abs(np.abs(law @ rule.scores - target).max() - rule.bias) < 1e-9
        assert rule.bias <= 0.5
    # More words allow less bias, where outputs tell it.
    assert many.bias < few.bias / 10 or (mechanism.excluded or mechanism.spec.get("remap"))
    assert many.bias <= few.bias and many.deviation >= few.deviation


def test_large_spaces_are_scored_by_few_outputs_with_an_exact_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fastdx.counts.linear.MOST_OUTPUTS", 24)
    mechanism = Tem(E, 4.5)
    channel = Channel.of(mechanism)
    rule = Estimator(channel)._rule(indicator(channel, LEXICON), 1e6)
    assert len(np.unique(rule.scores)) <= 25
    target = np.append(indicator(channel, LEXICON), 0)
    assert abs(np.abs(law_of(mechanism) @ rule.scores - target).max() - rule.bias) < 1e-9
    assert rule.bias < 0.4


def test_a_word_that_is_shown_is_counted_with_certainty() -> None:
    tem = Tem(E, 3.0, oov="keep", skip=["w3", "secret"], seed=1)
    channel = Channel.of(tem)
    ids, lengths = channel._core.observed(["w3 other W3 secret.", "w3"], False)
    assert ids.tolist() == [3, 2 * SIZE, SIZE + 3, 2 * SIZE, 3]
    assert lengths.tolist() == [4, 1]


def update(law: Any, counts: Any, start: Any, rounds: int) -> Any:
    x, o = start.copy(), counts / counts.sum()
    for _ in range(rounds):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(o > 0, o / (law.T @ x), 0.0)
        x *= law @ ratio
    return x


@pytest.mark.parametrize("mechanism", [
    Tem(E, 3.0, seed=3), Tem(E, 3.0, skip=["w3"], oov="mask", seed=3),
    Tem(E, 4.0, cover=4, exclude=["w9"], seed=3), NeighborResponse(E, 3.0, cover=4, seed=3),
    FiniteLaw(E, laws.randomized_response(E, 3.0).matrix(), oov="drop", seed=3),
])  # fmt: skip
@pytest.mark.parametrize("memory", [1 << 30, 9_000, 0])
def test_the_update_is_that_of_plain_numpy(mechanism: Mechanism, memory: int) -> None:
    channel = Channel.of(mechanism)
    prior = RNG.random(SIZE)
    prior[5] = 0
    prior /= prior.sum()
    estimator = Estimator(channel, prior)
    estimator.add(mechanism.privatize(texts(documents(300, np.random.default_rng(1)))))
    counts = estimator.outputs()
    hidden = estimator._unknown
    start = np.append(prior * (1 - hidden), [hidden] * (mechanism.oov == "random"))
    found = estimator.distribution(memory=memory)
    x = update(law_of(mechanism), counts, start, found.rounds)
    assert found.rounds >= 3
    np.testing.assert_allclose(found.frequencies, x[:SIZE] / x[:SIZE].sum(), rtol=2e-5, atol=1e-12)
    assert abs(found.unknown - x[SIZE:].sum()) < 1e-6
    assert found.frequencies[5] == 0


def test_the_update_stops_where_held_out_documents_are_likeliest() -> None:
    tem = Tem(E, 3.0, oov="mask", seed=10)
    rng = np.random.default_rng(2)
    truth = rng.random(SIZE) ** 4
    truth /= truth.sum()
    made = [rng.choice(SIZE, 40, p=truth).tolist() for _ in range(400)]
    estimator = Estimator(Channel.of(tem), np.ones(SIZE))
    estimator.add(tem.privatize(texts(made)))
    found = estimator.distribution()
    # Not because there were no more rounds.
    assert found.rounds < 90
    law, halves = law_of(tem), estimator._halves()
    ids, starts = estimator._collected()
    of_word = np.repeat(halves, np.diff(starts))
    first, second = (np.bincount(ids[of_word == half], minlength=SIZE) for half in (0, 1))
    start = np.full(SIZE, 1 / SIZE)
    likelihood = [second @ np.log(law.T @ update(law, first, start, t))
                  for t in range(found.rounds + 4)]  # fmt: skip
    assert int(np.argmax(likelihood)) == found.rounds
    raw = estimator.outputs() / 16_000
    assert np.abs(found.frequencies - truth).sum() < 0.7 * np.abs(raw - truth).sum()
    assert [word for word, _ in estimator.top(1)] == [WORDS[int(found.frequencies.argmax())]]


def test_parts_counted_elsewhere_are_merged() -> None:
    tem = Tem(E, 4.0, seed=5)
    private = tem.privatize(texts(documents(40, np.random.default_rng(3))))
    whole = Estimator(Channel.of(tem)).add(private)
    parts = [Estimator(Channel.of(tem)).add(private[i::4]) for i in range(4)]
    sent = [pickle.loads(pickle.dumps(part)) for part in parts]
    merged = sent[0] + sent[1] + sent[2] + sent[3]
    assert merged.documents == 40
    assert merged.words == whole.words
    ours, theirs = merged.share(LEXICON), whole.share(LEXICON)
    assert ours.value == pytest.approx(theirs.value, rel=1e-9)
    assert ours.error == pytest.approx(theirs.error, rel=1e-9)
    np.testing.assert_allclose(merged.distribution().frequencies,
                               whole.distribution().frequencies, rtol=1e-9)  # fmt: skip
    assert sent[0].documents == 10


def test_columns_are_read_and_frames_refused() -> None:
    channel = Channel.of(Tem(E, 4.0))
    for column in (["w1 w2", None, "w3"], [["w1", "w2"], None, ["w3"]]):
        data = {"text": column}
        for frame in (pd.DataFrame(data), pl.DataFrame(data), pa.table(data)):
            found = Estimator(channel).add(frame["text"])
            assert repr(found) == "Estimator(2 documents, 3 words)"
            with pytest.raises(fastdx.InputTypeError, match="column"):
                Estimator(channel).add(frame)
    gone = pd.Series(["w1", pd.NA, "w2"], dtype="string")
    assert Estimator(channel).add(gone).documents == 2
    assert Estimator(channel).add("w1 w2").documents == 1
    assert Estimator(channel).add(np.array(["w1 w2", "w4"])).documents == 2


def test_a_list_within_is_one_document() -> None:
    """Texts of one person, or tokens: intervals take them as one."""
    tem = Tem(E, 4.0, oov="mask", seed=9)
    channel = Channel.of(tem)
    private = [tem.privatize(["w1 w3", "w2, w3!"]), tem.privatize_tokens(["w3", "other", "w4"])]
    found = Estimator(channel).add([private[0], None, [], private[1], [None, "w3"]])
    joined = Estimator(channel).add([" ".join(private[0]), "", " ".join(private[1]), "w3"])
    assert repr(found) == repr(joined) == "Estimator(4 documents, 8 words)"
    assert found.share(LEXICON) == joined.share(LEXICON)
    assert found._lengths[0].tolist() == [4, 0, 3, 1]


def test_what_cannot_be_counted_is_refused() -> None:
    channel = Channel.of(Tem(E, 4.0))
    with pytest.raises(fastdx.ParameterError, match=r"texts.*at 1") as told:
        Estimator(channel).add(["w1", "secret"])
    assert "secret" not in str(told.value)
    one, two = Estimator(channel).add("w1 w2"), Estimator(channel).add(["w1 w2", "w3"])
    same = Channel.of(Tem(E, 4.0, consistent="call"))
    refused(
        (fastdx.InputTypeError, r"texts\[1\]", lambda: Estimator(channel).add(["w1", 5])),
        (fastdx.InputTypeError, r"texts\[1\]\[0\]", lambda: Estimator(channel).add(["w1", [5]])),
        (fastdx.ParameterError, "same channel", lambda: one + Estimator(Channel.of(Tem(E, 4.5)))),
        *((fastdx.ParameterError, key, lambda key=key, x=x: plan(channel, "w1", **{key: x}))
          for key, x in (("within", 0), ("share", 0), ("words_per_document", 0), ("share", 1))),
        (fastdx.ParameterError, "consistent='call'", lambda: Estimator(same)),
        (fastdx.ParameterError, "prior", lambda: Estimator(channel, [1.0])),
        (fastdx.InputTypeError, "channel", lambda: Estimator(E)),  # type: ignore[arg-type]
        (fastdx.ParameterError, "documents", lambda: one.share("w1")),
        (fastdx.ParameterError, "documents", one.distribution),
        (fastdx.UnknownWordError, "", lambda: two.share("nothing")),
        (fastdx.ParameterError, "words", lambda: two.share([])),
        (fastdx.ParameterError, "apart", lambda: two.compare(two, ["w1"], apart=0)),
        (fastdx.ParameterError, "rate", lambda: two.compare(two, ["w1"], rate=1)),
        (fastdx.ParameterError, "confidence", lambda: two.compare(two, ["w1"], confidence=1)),
    )  # fmt: skip


def test_words_that_differ_are_found_and_others_are_not() -> None:
    tem = Tem(E, 9.0, oov="mask", seed=6)
    channel = Channel.of(tem)
    rng = np.random.default_rng(4)
    first = Estimator(channel).add(tem.privatize(texts(documents(800, rng, lean=1.5))))
    second = Estimator(channel).add(tem.privatize(texts(documents(800, rng))))
    found = first.compare(second, WORDS)
    differing = {d.word for d in found if d.differs}
    # The shares of the others fall a little, below what can be seen.
    assert {"w3", "w10"} <= differing
    assert all(d.low <= d.value <= d.high for d in found)
    assert [d.p_value for d in found] == sorted(d.p_value for d in found)


def test_p_values_include_the_bias() -> None:
    """Where two words have one law, a difference of the one may be that of the other."""
    law = np.full((4, 4), 0.01) + np.diag([0.96] * 4)
    law[2] = law[3]  # nobody can tell these words apart
    small = Embedding(list("abcd"), RNG.normal(size=(4, 2)))
    m = FiniteLaw(small, law / law.sum(axis=1, keepdims=True), oov="mask", seed=7)
    channel = Channel.of(m)
    first = Estimator(channel).add(m.privatize(["a b c c c c"] * 300))
    second = Estimator(channel).add(m.privatize(["a b d d d d"] * 300))
    third = Estimator(channel).add(m.privatize(["a b b b b b"] * 300))
    assert not any(d.differs for d in first.compare(second, list("abcd")))
    found = {d.word: d for d in first.compare(third, list("abcd"))}
    assert found["b"].differs
    assert not found["c"].differs
    assert found["c"].bias >= 0.99
    # Whoever knows that the groups are near each other weighs the bias less.
    near = first.compare(third, ["b"], apart=0.1)[0]
    assert near.differs
    assert near.bias < 1e-6


def test_discoveries_are_those_of_the_step_up() -> None:
    p = np.array([0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205])
    # 1 + 1/2 + … + 1/8 times the rates of Benjamini and Hochberg's example.
    divided = 761 / 280
    assert discovered(p, 0.05 * divided).tolist() == [True, True, *[False] * 6]
    assert discovered(p, 0.1 * divided).sum() == 7
    assert discovered(p, 0.05).sum() == 1
    assert discovered(np.zeros(0), 0.05).size == 0


def test_false_discoveries_are_bounded_where_nothing_differs() -> None:
    """Any discovery is false here, so in at most .2 of the trials there may be one."""
    m = FiniteLaw(E, laws.randomized_response(E, 6.0).matrix(), oov="mask", seed=8)
    channel = Channel.of(m)
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(60):
        groups = [Estimator(channel).add(m.privatize(texts(documents(40, rng)))) for _ in "ab"]
        false += any(d.differs for d in groups[0].compare(groups[1], WORDS[:20], rate=0.2))
    assert 60 - false > least_covered(60, 0.8, 1e-6)


def test_a_plan_for_randomised_response_is_that_of_its_formula() -> None:
    epsilon = 3.0
    m = FiniteLaw(E, laws.randomized_response(E, epsilon).matrix(), oov="mask")
    found = plan(Channel.of(m), LEXICON, within=0.2, share=0.1)
    assert found.epsilon == pytest.approx(epsilon, abs=1e-6)
    assert found.documents == pytest.approx(found.response, rel=0.05)
    assert found.curator < found.documents
    assert not found.wrong_tool
    assert "±2.00%" in str(found)


def test_a_plan_says_where_no_number_is_enough() -> None:
    law = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    m = FiniteLaw(Embedding(list("abc"), [[0.0], [1.0], [2.0]]), law, oov="mask")
    found = plan(Channel.of(m), "a", share=0.3)
    assert math.isinf(found.documents)
    assert found.bias == pytest.approx(0.5, abs=1e-6)
    assert "no number of documents" in str(found)
    assert "wrong tool" in str(found)


def test_a_prior_of_language_is_taken() -> None:
    channel = Channel.of(Tem(E, 4.0))
    prior = NgramPrior.train(E, ["w1 w2 zz zz", "w1"], order=1)
    estimator = Estimator(channel, prior)
    np.testing.assert_allclose(estimator._prior, prior.frequencies)
    assert estimator._unknown == pytest.approx(prior.unknown)
    assert (Estimator(channel) + Estimator(channel)).documents == 0
