"""Earth Mover's distances, bags under privacy, attribution."""

import pickle
from collections import Counter
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastdx
from fastdx import BagOfWords, Embedding, FiniteLaw, MultivariateLaplace, Tem, WordGraph
from fastdx.bags import STOP_WORDS
from fastdx.lab.noise import multivariate_laplace
from helpers.bounds import assert_counts, slack
from helpers.draws import ALARM, assert_follows
from helpers.errors import refused
from helpers.liars import LIES, Lie, tell
from helpers.spaces import line, numbered

ENGLISH = Embedding.default()


def test_bags_in_every_form() -> None:
    e = line(0, 1, 3)
    for bag in (["a", "c", "c"], {"a": 1, "c": 2}, Counter("acc"), iter("acc")):
        assert fastdx.earth_movers_distance(bag, ["b"] * 3, e) == pytest.approx(5 / 3)
    assert fastdx.earth_movers_distance(["a"], ["a", "c"], e) == 1.5
    emd: Any = fastdx.earth_movers_distance
    refused(
        (fastdx.ParameterError, "bag", lambda: emd([], ["a"], e)),
        (fastdx.UnknownWordError, "bag_a: word 0, of 5 char", lambda: emd(["zebra"], ["a"], e)),
        (fastdx.InputTypeError, "bag_a", lambda: emd("abc", ["a"], e)),
        (fastdx.InputTypeError, "bag_b", lambda: emd(["a"], "abc", e)),
        (fastdx.ParameterError, "count", lambda: emd({"a": -1}, ["a"], e)),
        (fastdx.InputTypeError, "a bag's words are str", lambda: emd(([0], [1]), ["a"], e)),
    )
    graph = WordGraph([("a", "b"), ("b", "c")])
    assert fastdx.earth_movers_distance(["a"], ["b", "c"], graph) == 1.5


def test_the_papers_documents() -> None:
    # POST'19, figure 1; the built-in vocabulary has no "greets".
    president = ["president", "welcomes", "press", "chicago"]
    chief = ["chief", "speaks", "media", "illinois"]
    chef = ["chef", "breaks", "cooking", "record"]
    near = fastdx.earth_movers_distance(president, chief, ENGLISH)
    assert near < fastdx.earth_movers_distance(president, chef, ENGLISH)
    assert near < fastdx.earth_movers_distance(chief, chef, ENGLISH)
    # The best of the 24 pairings, by hand.
    d = [[ENGLISH.distance(a, b) for b in chief] for a in president]
    best = min(sum(d[i][p[i]] for i in range(4)) for p in permutations(range(4))) / 4
    assert near == pytest.approx(best, rel=1e-12)


def test_a_plan_and_its_proof_by_costs_in_any_memory() -> None:
    """Arrays that are read where they stand, and those that numpy has to convert, say the same."""
    rng = np.random.default_rng(5)
    a, b, cost = rng.random(7), rng.random(9), rng.random((7, 9))
    b *= a.sum() / b.sum()
    expected = fastdx.optimal_transport(a, b, cost)
    # Its own potentials prove the plan, as in tests/it/transport.rs.
    np.testing.assert_allclose([*expected.plan.sum(1), *expected.plan.sum(0)], [*a, *b])
    u, v = expected.dual_potentials
    assert (u[:, None] + v <= cost + 1e-12).all() and abs(expected.gap) < 1e-12
    assert (expected.plan * cost).sum() == pytest.approx(expected.cost) == a @ u + b @ v
    locked = cost.copy()
    locked.setflags(write=False)
    wide = np.zeros((14, 27))
    wide[::2, ::3] = cost
    forms = [cost.tolist(), np.asfortranarray(cost), locked, wide[::2, ::3], cost.astype(">f8")]
    forms += [cost[::-1][::-1], cost.copy().view(np.ma.MaskedArray)]
    for form in forms:
        t = fastdx.optimal_transport(a, b, form)
        assert t.cost == expected.cost
        assert (t.plan == expected.plan).all()
    apart = np.repeat(a, 2)[::2]
    for first, second in [(a.tolist(), b.tolist()), (apart, b.astype(">f8")), (a, tuple(b))]:
        assert fastdx.optimal_transport(first, second, cost).cost == expected.cost
    whole = rng.integers(0, 5, (7, 7))
    ones = np.ones(7)
    by_floats = fastdx.optimal_transport(ones, ones, whole * 1.0).cost
    assert fastdx.optimal_transport(ones.astype(np.float32), ones, whole).cost == by_floats


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "angular"])
def test_many_documents(metric: str) -> None:
    rng = np.random.default_rng(2)
    e = numbered(rng.normal(size=(200, 10)), metric)

    def bags(count: int) -> list[Counter[str]]:
        return [Counter(rng.choice(e.words, rng.integers(1, 20)).tolist()) for _ in range(count)]

    documents, queries = bags(60), bags(12)
    # Copies, and one with other proportions: ties and zeros.
    tripled = Counter({word: 3 * count for word, count in queries[0].items()})
    documents += [documents[3], queries[0], tripled]
    rows: list[int] = []
    same = fastdx.pairwise_emd(documents, e, progress=rows.append)
    assert (same == same.T).all() and not same.diagonal().any()
    every = fastdx.pairwise_emd(queries, e, documents)
    for matrix, left in ((same, documents), (every, queries)):
        alone = [[fastdx.earth_movers_distance(a, b, e) for b in documents] for a in left]
        np.testing.assert_allclose(matrix, alone, atol=1e-12)
    for k in (1, 5, len(documents)):
        found = fastdx.nearest_documents(queries, documents, e, k)
        np.testing.assert_allclose(found.distances, np.sort(every)[:, :k], atol=1e-12)
        own = np.take_along_axis(every, found.ids.astype(int), axis=1)
        np.testing.assert_allclose(found.distances, own, atol=1e-12)
        counts = found.pruning
        assert counts.pop("pairs") == every.size == sum(counts.values())
        assert k == len(documents) or counts["exact"] < every.size / 2, counts


def test_bad_documents_are_refused() -> None:
    bags, pairs, wrong = [["coffee"], ["tea"]], fastdx.pairwise_emd, fastdx.ParameterError
    refused(
        (wrong, "k must be", lambda: fastdx.nearest_documents(bags, bags, ENGLISH, 3)),
        (wrong, r"bags\[1\].*1 to 2\^31", lambda: pairs([["coffee"], []], ENGLISH)),
        (wrong, r"bags\[0\].*word 0", lambda: pairs([{"tea": -1}], ENGLISH)),
    )


def test_a_private_bag_has_the_law_of_its_words() -> None:
    e = line(0, 1, 2.5)
    tem = Tem(e, 1.0, seed=3)
    bags = BagOfWords(tem)
    outputs = Counter(
        tuple(sorted(b.elements()))
        for b in bags.privatize_documents(["a a c"] * 60_000, stop_words=None)
    )
    keys = list(combinations_with_replacement("abc", 3))
    assert set(outputs) <= set(keys)
    law = np.exp([bags.log_probability(k, ["a", "a", "c"]) for k in keys])
    assert_follows([outputs[k] for k in keys], law)


def test_the_probability_of_a_bag_is_a_sum_over_all_arrangements() -> None:
    rng = np.random.default_rng(4)
    law = rng.random((5, 5)) * (rng.random((5, 5)) > 0.2)
    law[0] = np.exp(-300.0 * np.arange(5))
    m = FiniteLaw(line(*range(5)), law / law.sum(axis=1, keepdims=True), certify=False)
    rows = np.stack([m.probabilities(w) for w in "abcde"])
    for words, released in rng.integers(0, 5, (40, 2, 5)):
        brute = sum(np.prod(rows[words, list(a)]) for a in set(permutations(released.tolist())))
        bag, output = (Counter("abcde"[i] for i in ids) for ids in (words, released))
        expected = np.log(brute) if brute else -np.inf
        found = BagOfWords(m).log_probability(output, bag)
        assert found == pytest.approx(expected, abs=1e-9)


def largest_excess(drawn: Tem, claimed: BagOfWords, size: int = 3) -> float:
    """How far the log-ratio of any output of any two bags lies above the claimed bound."""
    words = drawn.space.words
    bags = list(combinations_with_replacement(words, size))
    law = np.array([[BagOfWords(drawn).log_probability(y, x) for y in bags] for x in bags])
    assert np.exp(law).sum(axis=1) == pytest.approx(np.ones(len(bags)))
    bound = np.array([[claimed.bound(x, y) for y in bags] for x in bags])
    return float(((law[:, None] - law[None]).max(axis=2) - bound).max())


def test_the_bound_for_bags_holds_exactly_and_convicts_a_liar() -> None:
    e = Embedding(list("abcd"), [[0.0, 0.0], [0.4, 0.0], [0.0, 0.7], [1.1, 1.0]])
    claimed = BagOfWords(Tem(e, 1.5))
    allowed = 3 * slack(claimed.mechanism.guarantee)
    assert -0.1 < largest_excess(Tem(e, 1.5), claimed) <= allowed
    assert largest_excess(Tem(e, 4.0), claimed) > 0.1


def test_the_edges_of_the_probability_of_a_bag() -> None:
    m, (a, b, c), many = Tem(line(0, 1, 2.5), 1.0, skip=["b"]), "abc", ENGLISH.words[:21]
    of = BagOfWords(m).log_probability
    assert of([a, b], [a, b, c]) == -np.inf == of([a, c], [b, c]) and of([], {}) == 0.0
    assert np.exp(of([a, b], [a, b])) == pytest.approx(m.probabilities(a)[0])
    for mechanism, output, said in (
        (Tem(ENGLISH, 3.0), many, "output has 2,097,152 sub-bags"), (m, ["zzz"], r"words\[0\]"),
        (MultivariateLaplace(line(0, 1), 1.0), [a], "law"),
    ):  # fmt: skip
        with pytest.raises(fastdx.FastdxError, match=said):
            BagOfWords(mechanism).log_probability(output, output)


def test_the_bound_for_bags_of_noise(draws: int = 50_000) -> None:
    e = line(0, 0.4, 1)
    bags, claimed = (BagOfWords(MultivariateLaplace(e, 1.0, seed=seed)) for seed in (5, None))
    inputs, outputs = (
        [["a", "a"], ["a", "b"], ["b", "c"], ["c", "c"]],
        list(combinations_with_replacement("abc", 2)),
    )
    counts, bounds = np.zeros((4, len(outputs))), np.zeros((4, 4))
    for i, x in enumerate(inputs):
        out = bags.privatize_documents([" ".join(x)] * draws, stop_words=None)
        drawn = Counter(tuple(sorted(b.elements())) for b in out)
        counts[i] = [drawn[bag] for bag in outputs]
        bounds[i] = [claimed.bound(x, y) for y in inputs]
        emd = [fastdx.earth_movers_distance(x, y, e) for y in inputs]
        assert bounds[i] == pytest.approx(2 * np.array(emd))
    assert_counts(counts, draws, bounds, "bags")


@pytest.mark.parametrize("lie", LIES)
def test_liars_with_bags_are_convicted(lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, lie)
    with pytest.raises(AssertionError, match="REFUTED"):
        test_the_bound_for_bags_of_noise(draws=10_000)


def test_the_bound_for_bags_covers_the_rounding_of_distances() -> None:
    e = Embedding(["a", "b"], np.random.default_rng(3).normal(size=(2, 50)))
    for m in (Tem(e, 1.0), MultivariateLaplace(e, 1.0)):
        bound = BagOfWords(m).bound(["a"], ["b"])
        assert bound == pytest.approx(m.guarantee.bound("a", "b"), rel=1e-13)


def test_bags_of_words_api() -> None:
    bags = BagOfWords(Tem(epsilon=3.0))
    assert all(fastdx.tokenize(word) == [word] for word in STOP_WORDS)
    out = bags.privatize({"coffee": 3, "tea": 0, "xyzzyx": 1})
    assert out.total() == 4 and list(out) == sorted(out)
    documents = bags.privatize_documents(["The coffee is good, isn't it?", "", "of the"])
    assert [d.total() for d in documents] == [2, 0, 0]
    guarantee = bags.guarantee_for({"coffee": 3, "tea": 1})
    assert guarantee.epsilon == 12.0 == bags.guarantee_for(4).epsilon
    assert guarantee.slack == 4 * slack(bags.mechanism.guarantee) > 0
    assert "4 words" in str(guarantee) and "nothing is proved" in str(guarantee)
    assert bags.bound(["tea"], ["tea", "tea"]) == float("inf")
    assert pickle.loads(pickle.dumps(bags)).mechanism.epsilon == 3.0
    assert bags.guarantee_for({"coffee": 10**12}).size == 10**12
    for unproved in (Tem(epsilon=2.0, skip=["coffee"]), Tem(epsilon=2.0, seed=1)):
        assert BagOfWords(unproved).bound(["coffee"], ["tea"]) == float("inf")
        assert BagOfWords(unproved).bound(["coffee"], ["coffee"]) == 0.0
    strict = BagOfWords(Tem(epsilon=1.0, oov="error"))
    refused(
        (fastdx.InputTypeError, "texts", lambda: bags.privatize_documents("tea")),
        (fastdx.InputTypeError, "", lambda: bags.privatize("coffee")),
        (fastdx.InputTypeError, "", lambda: bags.privatize(b"coffee")),  # type: ignore[arg-type]
        (fastdx.ParameterError, "count of word 0", lambda: bags.privatize({"tea": -1})),
        (fastdx.ParameterError, "drop", lambda: BagOfWords(Tem(epsilon=1.0, oov="drop"))),
        (fastdx.InputTypeError, "", lambda: BagOfWords("tem")),  # type: ignore[arg-type]
        (fastdx.UnknownWordError, "token 0, of 6 char", lambda: strict.privatize(["xyzzyx"])),
    )


def test_the_corrected_utility_bound_holds_and_the_printed_one_does_not() -> None:
    # DESIGN section 5: n = 10, N = 3, far-apart words, εNΔ = n/e.
    n, size, epsilon = 10, 3, 1.0
    delta = n / np.e / (epsilon * size)
    draws = 40_000
    noise = multivariate_laplace(n, epsilon, draws * size, seed=1)
    emd = np.linalg.norm(noise, axis=1).reshape(draws, size).mean(1)
    printed = 0.0047
    upper = stats.beta.ppf(1 - ALARM, (emd <= delta).sum() + 1, draws - (emd <= delta).sum())
    assert upper < printed
    for distance in (delta, 8.0, 10.0, 12.0, 15.0):
        hits = int((emd <= distance).sum())
        bound = fastdx.utility_bound(n, epsilon, size, distance)
        assert stats.binomtest(hits, draws, max(bound, 1e-300)).pvalue > ALARM
        assert bound == pytest.approx(stats.gamma.cdf(size * distance, n * size), abs=1e-10)
    assert fastdx.utility_bound(n, epsilon, size, 0.0) == 0.0
    with pytest.raises(fastdx.ParameterError, match="distance"):
        fastdx.utility_bound(n, epsilon, size, -1.0)
    with pytest.raises(fastdx.ParameterError):
        fastdx.utility_bound(0, epsilon, size, 1.0)


def test_weights_normalised_with_less_precision_are_taken() -> None:
    rng = np.random.default_rng(3)
    for size in (3, 300):
        a, b = rng.random(size), rng.random(size)
        cost = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
        rough = [(w / w.sum()).astype(np.float32) for w in (a, b)]
        found = fastdx.optimal_transport(*rough, cost)
        assert np.isclose(found.plan.sum(), rough[0].astype(float).sum())
        exact = fastdx.optimal_transport(a / a.sum(), b / b.sum(), cost)
        assert np.isclose(found.cost, exact.cost, rtol=3e-6 * size)
    costs = np.array([[1.0, 2.0], [3.0, 4.0]])
    for first, second, form, said in (
        (rough[0], 1.1 * rough[1], cost, "same sum"), ([1, -1], [1, 1], costs, "-1 at 1"),
        ([1, 1], [np.nan, 1], costs, "weights_b"), ([0, 0], [0, 0], costs, "positive"),
        ([1], [1, 1], [[1.0, np.nan]], r"\(0, 1\)"), ([], [1, 1], np.zeros((0, 2)), None),
    ):  # fmt: skip
        with pytest.raises(fastdx.ParameterError, match=said):
            fastdx.optimal_transport(first, second, form)
