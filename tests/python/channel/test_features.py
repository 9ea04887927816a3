"""Features of private texts: against sums over all texts that could stand behind them."""

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import fastdx
from fastdx import Cover, Embedding, NeighborResponse, Tem, WordGraph
from fastdx.channel import Channel, NgramPrior
from fastdx.channel.features import TextFeatures
from fastdx.counts.update import Update
from fastdx.engines.sklearn import ROUNDS, ChannelNB, counted
from helpers.errors import refused
from helpers.laws import behind, law_of

WORDS = ["the", "a", "tea", "cup", "law", "of"]
VECTORS = np.array([[0.0, 1.0], [0.5, 0.2], [2.0, 3.0], [2.5, 2.0], [9.0, 1.0], [0.2, 0.6]])
TEXTS = ["the cup of tea", "a law", "of; of a tea!", "", "cup"]
PI = np.array([5.0, 3.0, 2.0, 1.0, 1.0, 4.0]) / 16


@pytest.fixture
def space() -> Embedding:
    return Embedding(WORDS, VECTORS)


def bayes(mechanism: fastdx.Mechanism) -> NDArray[np.float64]:
    joint = (PI[:, None] * law_of(mechanism)).T
    whole = joint.sum(axis=1, keepdims=True)
    return np.divide(joint, whole, out=np.tile(PI, (len(PI), 1)), where=whole > 0)


def words_of(text: str) -> list[int]:
    return [WORDS.index(w.strip(";!")) for w in text.split()]


SPACE = Embedding(WORDS, VECTORS)
COVER = Cover.nearest(SPACE, 2)


@pytest.mark.parametrize("m", [
    Tem(SPACE, 1.3), Tem(SPACE, 1.3, cover=COVER), NeighborResponse(SPACE, 2.0, cover=COVER),
    Tem(SPACE, 1.3, remap=COVER), Tem(SPACE, 1.3, cover=2, exclude=["a"]),
])  # fmt: skip
def test_the_table_is_bayes(m: fastdx.Mechanism, space: Embedding) -> None:
    posterior = bayes(m)
    vectors = np.asarray(space.vectors, dtype=float)
    # An output that is never released has the prior as its posterior.
    np.testing.assert_allclose(Channel.of(m).posterior_means(PI), posterior @ vectors, rtol=1e-12)
    if m.excluded:
        return
    got = TextFeatures(Channel.of(m), PI)(TEXTS)
    for text, row in zip(TEXTS, got, strict=True):
        rows = posterior[words_of(text)]
        want = (rows @ vectors).mean(axis=0) if len(rows) else np.zeros(2)
        np.testing.assert_allclose(row, want, atol=1e-6)
    prior = NgramPrior.of_frequencies(space, PI)
    decoded = Channel.of(m).decode(TEXTS[0], prior)
    np.testing.assert_allclose(got[0], decoded.means.mean(axis=0), atol=1e-9)


def test_a_model_with_history_is_summed_over_all_texts(space: Embedding) -> None:
    prior = NgramPrior.train(space, ["the cup of tea", "a cup of tea", "the law of a law"], order=2)
    m = Tem(space, 1.0, oov="error")
    want = behind(prior, law_of(m)[:, words_of("law cup of")].T)
    want /= want[0].sum()
    one = Channel.of(m).decode("law cup of", prior)
    np.testing.assert_allclose(one.expected_counts(), want.sum(axis=0), atol=1e-9)
    got = TextFeatures(Channel.of(m), prior)(["law cup of", "tea"])
    np.testing.assert_allclose(got[0], one.means.mean(axis=0), atol=1e-9)
    # It differs from what one word at a time gives.
    alone = TextFeatures(Channel.of(m), prior.frequencies)(["law cup of"])
    assert abs(alone[0] - got[0]).max() > 1e-3


@pytest.mark.parametrize("policy", [
    {}, {"skip": ["of"]}, {"oov": "mask"}, {"skip": ["of"], "oov": "mask"}, {"consistent": True},
])  # fmt: skip
def test_many_texts_at_once_are_what_each_is(space: Embedding, policy: dict[str, Any]) -> None:
    """Blocks of texts, empty ones and words that show themselves; against decoding each."""
    rng = np.random.default_rng(4)
    channel = Channel.of(Tem(space, 1.0, **policy))
    prior = NgramPrior.of_frequencies(space, PI, unknown=0.3)
    pool = [*WORDS, *["[MASK]"] * ("oov" in policy), *["Of,"] * ("skip" in policy)]
    texts = [" ".join(rng.choice(pool, rng.integers(0, 9))) for _ in range(80)]
    means = TextFeatures(channel, prior)([*texts, None])
    assert "" in texts and not means[-1].any()
    for text, mean in zip(texts, means, strict=False):
        want = channel.decode(text, prior).means if text else np.zeros((1, 2))
        np.testing.assert_allclose(mean, want.mean(axis=0), atol=1e-9)


def test_em_reaches_the_maximum(space: Embedding) -> None:
    """Against the condition of the maximum: at it, the derivative by each share is the total."""
    tem = Tem(space, 1.0)
    k, update = law_of(tem), Update(Channel.of(tem)._core, np.arange(6), PI, 0.0, 1 << 20)
    counts = np.array([[40.0, 3, 0, 10, 7, 1], [0.0, 0, 9, 1, 30, 2]])
    smooth = 6 * PI

    def worth(rounds: int) -> NDArray[np.float64]:
        shares = update.after(rounds, counts, 6.0)
        value: NDArray[np.float64] = (counts * np.log(shares @ k)).sum(axis=1) + (
            smooth * np.log(shares)
        ).sum(axis=1)
        return value

    steps = np.array([worth(rounds) for rounds in (1, 2, 5, 20, 100)])
    assert (np.diff(steps, axis=0) >= -1e-6).all()
    found = update.after(5000, counts, 6.0)
    slope = (counts / (found @ k)) @ k.T + smooth / found
    np.testing.assert_allclose(slope, np.repeat(counts.sum(axis=1) + 6, 6).reshape(2, 6), rtol=1e-4)


def test_clear_texts_and_words_that_are_no_outputs(space: Embedding) -> None:
    features = TextFeatures(Channel.of(Tem(space, 1.0)), PI)
    vectors = np.asarray(space.vectors, dtype=float)
    np.testing.assert_allclose(features.of_clear(["Tea, nothing LAW", "none"]),
                               [vectors[[2, 4]].mean(axis=0), [0, 0]], atol=1e-6)  # fmt: skip
    np.testing.assert_allclose(features(["tea xyzzy"]), features(["tea"]), atol=1e-9)
    with pytest.raises(fastdx.ParameterError, match="release of this mechanism") as caught:
        features(["xyzzy"])
    assert "xyzzy" not in str(caught.value)


def test_masked_words_are_left_out_where_the_prior_knows_no_unknown_ones(space: Embedding) -> None:
    features = TextFeatures(Channel.of(Tem(space, 1.0, oov="mask")), PI)
    np.testing.assert_array_equal(features(["tea [MASK] a"]), features(["tea a"]))
    with pytest.raises(fastdx.ParameterError, match=r"texts .* at 1"):
        features(["tea", "[MASK]"])


def test_what_is_refused(space: Embedding) -> None:
    channel = Channel.of(Tem(space, 1.0))
    graph = Channel.of(Tem(WordGraph([("a", "b"), ("b", "c")]), 1.0))
    features: Any = TextFeatures
    refused(
        (fastdx.FastdxError, "prior|frequencies", lambda: features(channel, [1.0])),
        (fastdx.InputTypeError, "channel", lambda: features(Tem(space, 1.0))),
        (fastdx.ParameterError, "vectors", lambda: features(graph)),
    )


def test_pickles_work_elsewhere(space: Embedding) -> None:
    for prior in (PI, NgramPrior.train(space, ["the cup of tea"], order=2)):
        features = TextFeatures(Channel.of(Tem(space, 1.0)), prior)
        again = pickle.loads(pickle.dumps(features))
        np.testing.assert_array_equal(again(TEXTS), features(TEXTS))


def test_naive_bayes_through_the_law(space: Embedding) -> None:
    m = Tem(space, 1.5, seed=3)
    texts, labels = ["cup of tea", "the law of a law"] * 30, ["drinks", "courts"] * 30
    private = m.privatize(texts)
    judge = clone(ChannelNB(Channel.of(m), PI)).fit(private, labels)
    # The same by dense matrices; both classes have as many texts.
    counts, law = counted(Channel.of(m), private).toarray(), law_of(m)
    sums, shares = np.array([counts[1::2].sum(axis=0), counts[::2].sum(axis=0)]), PI
    for _ in range(ROUNDS):
        shares = shares * ((sums / (shares @ law)) @ law.T) + len(PI) * PI
        shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(judge.shares_, shares, rtol=1e-4, atol=1e-9)
    best = (counts @ np.log(shares @ law).T).argmax(axis=1)
    assert judge.predict(private).tolist() == [["courts", "drinks"][i] for i in best]
    assert judge.predict_clear(texts).tolist() == labels
    np.testing.assert_allclose(judge.released_, judge.shares_ @ law_of(m), rtol=1e-9)
    again = pickle.loads(pickle.dumps(judge))
    assert (again.predict(private) == judge.predict(private)).all()
    with pytest.raises(fastdx.ParameterError, match="consistent"):
        ChannelNB(Channel.of(Tem(space, 1.5, consistent=True))).fit(private, labels)
    with pytest.raises(fastdx.ParameterError, match="60 labels, got 2"):
        judge.fit(private, labels[:2])
