"""Word graphs of edges and of all distances, Tem on them, and guarantees in a larger metric."""

import pickle
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastdx
from fastdx import (
    Cover,
    Embedding,
    FiniteLaw,
    Mechanism,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
    WordGraph,
)
from fastdx.channel import Channel
from fastdx.lab import audit
from helpers.bounds import assert_bound, assert_exact_bound
from helpers.copies import assert_copies
from helpers.draws import assert_draws
from helpers.errors import refused
from helpers.laws import Numbers, distances_of, distances_to_sets, law_of, ratios_of, tem_law
from helpers.spaces import line

EDGES = [("dog", "animal"), ("cat", "animal"), ("oak", "plant"), ("plant", "thing"),
         ("animal", "thing"), ("pan", "pot")]  # fmt: skip
WORDS = ["tea", "coffee", "cup", "law", "court", "judge", "red"]


def closed(table: Numbers) -> Numbers:
    """The shortest paths of a table: a metric. Whole numbers, so that sums are exact."""
    table = np.minimum(table, table.T)
    np.fill_diagonal(table, 0)
    for k in range(len(table)):
        table = np.minimum(table, table[:, k, None] + table[k])
    return table


def random_metric(seed: int, words: int = len(WORDS)) -> Numbers:
    return closed(np.random.default_rng(seed).integers(1, 9, (words, words)) / 4)


METRIC = random_metric(4)
GRAPH = WordGraph.from_distances(WORDS, METRIC)


def test_a_graph_has_the_distances_that_were_given() -> None:
    assert (distances_of(GRAPH) == METRIC).all()
    by_function = WordGraph.from_distances(
        WORDS, lambda a, b: METRIC[WORDS.index(a), WORDS.index(b)])  # fmt: skip
    assert (distances_of(by_function) == METRIC).all()
    assert (GRAPH.metric, GRAPH.edges, GRAPH.unreachable_distance) == ("given", 21, None)
    # Its distances are kept exactly, also where the largest is rounded up to a power of two.
    for largest in (2.0, 2 - 2.0**-50, 2 - 2.0**-31, 2.0**-60, 1e200):
        one = WordGraph.from_distances(["a", "b", "c"], largest * closed(np.array(
            [[0, 1, 0.7], [1, 0, 0.6], [0.7, 0.6, 0]])))  # fmt: skip
        copy = pickle.loads(pickle.dumps(one))
        assert (distances_of(copy) == distances_of(one)).all()
        assert largest <= one.distance("a", "b") + largest * 2.0**-46
    # Other numbers are rounded up to multiples of a power of two.
    points = np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)
    table = np.linalg.norm(points[:, None].astype(float) - points, axis=2)
    found = distances_of(WordGraph.from_distances([f"w{i}" for i in range(60)], table))
    assert (found >= table - 2.0**-46 * table.max()).all()
    assert (found - table).max() < 2.0**-29 * table.max()


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.5, np.inf])
def test_the_law_is_that_of_the_paper(gamma: float) -> None:
    base = np.array([9.0, 1.0, 1.0, 4.0, 1.0, 2.0, 1.0])
    cover = Cover.nearest(GRAPH, 2, exclude=["law"])
    for tem, law in (
        (Tem(GRAPH, 2.0, gamma=gamma), tem_law(METRIC, 2.0, gamma)),
        (Tem(GRAPH, 2.0, gamma=gamma, language=base), tem_law(METRIC, 2.0, gamma, base)),
        (Tem(GRAPH, 2.0, gamma=gamma, cover=cover), tem_law(distances_to_sets(cover), 2.0, gamma)),
    ):
        np.testing.assert_allclose(law_of(tem), law, rtol=1e-9)
        for i, word in enumerate(WORDS[:3]):
            assert_draws(tem, word, law[i], 40_000)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 9), st.floats(0.1, 20), st.booleans(),
       st.sampled_from([None, 0.7, np.inf]))  # fmt: skip
def test_the_bound_holds_on_random_metrics(
    seed: int, count: int, epsilon: float, points: bool, gamma: float | None
) -> None:
    words = [f"w{i}" for i in range(count)]
    if points:
        vectors = np.random.default_rng(seed).integers(-3, 4, (count, 2)) / 8
        table = np.abs(vectors[:, None] - vectors).sum(axis=2)  # words may be at distance 0
    else:
        table = random_metric(seed, count)
    graph = WordGraph.from_distances(words, table)
    tem = Tem(graph, epsilon, **({} if gamma is None else {"gamma": gamma}))
    assert (distances_of(graph) == table).all()
    assert_exact_bound(tem)
    ratios = ratios_of(law_of(tem))
    assert (ratios <= epsilon * table + 1e-9).all()
    found = audit.certify(tem) if (table > 0).any() else None
    if found is not None:
        loss = audit.certify(tem, metric=table)
        assert found.epsilon <= epsilon * (1 + 1e-9) and loss.epsilon <= found.epsilon * (1 + 1e-6)
    assert_copies(tem)


def test_draws_keep_the_bound_and_a_liar_does_not() -> None:
    tem = Tem(GRAPH, 2.0)
    assert_bound(tem, tem.guarantee)
    lie = Tem(WordGraph.from_distances(WORDS, METRIC / 4), 2.0).guarantee
    for check in (assert_bound, assert_exact_bound):
        with pytest.raises(AssertionError, match="REFUTED"):
            check(tem, lie)


LIES: list[tuple[int, int, float, str]] = [
    (0, 1, np.nan, r"NaN from \"tea\" \(word 0\) to \"coffee\" \(word 1\)"),
    (2, 5, np.inf, r"inf from \"cup\" \(word 2\) to \"judge\""),
    (3, 1, -1.0, r"-1 from \"law\""),
    (2, 2, 0.5, r"0 from a word to itself, got 0.5 from \"cup\""),
    (6, 1, 1.8125, r"both ways, got 1.8125 from \"red\" \(word 6\) to \"coffee\" .* 1 back"),
]


@pytest.mark.parametrize(("i", "j", "value", "message"), LIES)
def test_what_is_no_metric_is_refused(i: int, j: int, value: float, message: str) -> None:
    wrong = METRIC.copy()
    wrong[i, j] = value
    with pytest.raises(fastdx.ParameterError, match=f"^distances must be .*{message}"):
        WordGraph.from_distances(WORDS, wrong)


def test_one_side_that_is_too_long_is_found_wherever_it_is() -> None:
    for i, j in permutations(range(7), 2):
        wrong = METRIC.copy()
        # A hair longer than the shortest way round.
        others = [k for k in range(7) if k not in (i, j)]
        wrong[i, j] = wrong[j, i] = (METRIC[i, others] + METRIC[others, j]).min() + 2.0**-28
        with pytest.raises(fastdx.ParameterError, match=r"by way of .*\(word") as told:
            WordGraph.from_distances(WORDS, wrong)
        assert WORDS[i] in str(told.value) and WORDS[j] in str(told.value)
        mended = wrong + 2.0**-28 * (1 - np.eye(7))  # as the message says
        assert "adding 3.7" in str(told.value)
        WordGraph.from_distances(WORDS, mended)


def test_squares_of_distances_are_refused() -> None:
    places = np.arange(400.0)
    with pytest.raises(fastdx.ParameterError, match="by way of"):
        WordGraph.from_distances([f"w{i}" for i in range(400)], (places[:, None] - places) ** 2)


def test_wrong_arguments(tmp_path: Path) -> None:
    made, many = WordGraph.from_distances, [f"w{i}" for i in range(20_001)]
    refused(
        (fastdx.ShapeError, r"distances has shape \(2, 2\), expected \(7, 7\)",
         lambda: made(WORDS, np.zeros((2, 2)))),
        (fastdx.DuplicateWordError, "tea", lambda: made(["tea", "tea"], np.zeros((2, 2)))),
        (fastdx.ParameterError, "words must be between 1", lambda: made([], np.zeros((0, 0)))),
        (fastdx.InputTypeError, "must return a number, not for words 1 and 0",
         lambda: made(WORDS, lambda a, b: "near")),  # type: ignore[arg-type,return-value]
        (fastdx.ParameterError, "distances must be a matrix or a space",
         lambda: made(many, lambda a, b: 1.0)),
        (ZeroDivisionError, "", lambda: made(WORDS, lambda a, b: 1 / 0)),
        *((fastdx.ParameterError, "keep the words and the table", partial(save, tmp_path / "graph"))
          for save in (GRAPH.save, Tem(GRAPH, 1.0).save)),
    )  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_everything_else_takes_it() -> None:
    tem = Tem(GRAPH, 2.0, exclude=["red"])
    assert 0 < Channel.of(tem).bits() < np.log2(7)
    certified = Tem(GRAPH, 2.0, certified=True)
    assert certified.guarantee.certificate is not None and certified.epsilon <= 2.0
    assert ratios_of(law_of(certified))[METRIC > 0].max() <= 2 * METRIC.max() + 1e-9
    assert_exact_bound(certified)
    for made in (FiniteLaw(GRAPH, law_of(tem)), NeighborResponse(GRAPH, 2.0, cover=2)):
        assert_exact_bound(made)
    assert GRAPH == GRAPH and Tem(GRAPH, 2.0) == Tem(pickle.loads(pickle.dumps(GRAPH)), 2.0)
    for space in (GRAPH, WordGraph([("tea", "cup")])):
        with pytest.raises(fastdx.ParameterError, match="needs no lists"):
            Tem(space, 2.0).build_lists()


POINTS = Embedding(WORDS, np.random.default_rng(5).normal(size=(7, 2)))
LARGER: list[Callable[[], Any]] = [
    lambda: METRIC,
    lambda: GRAPH,
    lambda: lambda a, b: METRIC[WORDS.index(a), WORDS.index(b)],
]


@pytest.mark.parametrize("metric", LARGER)
@pytest.mark.parametrize("make", [
    lambda: Tem(POINTS, 3.0), lambda: MultivariateLaplace(POINTS, 3.0),
    lambda: NeighborResponse(POINTS, 3.0, cover=2),
])  # fmt: skip
def test_a_guarantee_in_another_metric(
    make: Callable[[], Mechanism], metric: Callable[[], Any]
) -> None:
    made = make()
    found = made.guarantee.in_metric(metric())
    apart = METRIC > 0
    bounds = np.array([[made.guarantee.bound([a], [b]) for b in WORDS] for a in WORDS])
    assert found == pytest.approx((bounds[apart] / METRIC[apart]).max(), rel=1e-9)
    assert (bounds <= found * METRIC * (1 + 1e-15)).all()
    # A liar who claims less is convicted by the two words that reach it.
    assert not (bounds <= 0.999999 * found * METRIC).all()
    if made.has_law:
        assert (ratios_of(law_of(made)) <= found * METRIC + made.guarantee.slack + 1e-9).all()


def test_a_guarantee_in_its_own_metric_and_in_none() -> None:
    tem = Tem(POINTS, 3.0)
    assert tem.guarantee.in_metric(POINTS) == pytest.approx(3.0, rel=1e-9)
    assert tem.guarantee.in_metric(np.where(np.eye(7), 0, np.inf)) == 0
    alone = Tem(WordGraph.from_distances(["tea"], [[0.0]]), 2.0)
    assert alone.guarantee.in_metric([[0.0]]) == 0
    zero = METRIC.copy()
    zero[0, 3] = 0
    others = Embedding(WORDS[::-1], POINTS.vectors)
    refused(
        *((fastdx.ParameterError, f"metric must be {message}",
           partial(tem.guarantee.in_metric, wrong)) for wrong, message in (
            (zero, "above 0 between words that can be told apart, got 0 from"),
            (np.full((7, 7), np.nan), "at least 0, got NaN from"),
            (others, "of the mechanism's words"))),
        (fastdx.ShapeError, "metric has shape", lambda: tem.guarantee.in_metric(np.zeros((2, 2)))),
        (fastdx.ParameterError, "one of which something is proved",
         lambda: Tem(POINTS, 3.0, seed=1).guarantee.in_metric(METRIC)),
    )  # fmt: skip


def test_distances_and_words() -> None:
    graph = WordGraph(EDGES)
    assert graph.words[:2] == ("dog", "animal")
    assert (len(graph), graph.edges) == (8, 6)
    assert graph.distance("dog", "oak") == 4.0
    assert graph.unreachable_distance == 5.0 == graph.distance("pan", "oak")
    assert graph.distances("pan")[graph.ids(["pot"])[0]] == 1.0
    assert "oak" in graph and "elm" not in graph and 3 not in graph
    assert WordGraph(EDGES[:5]).unreachable_distance is None
    with pytest.raises(fastdx.UnknownWordError, match="elm"):
        graph.distance("oak", "elm")


def test_edges_from_a_file_an_array_and_an_iterator(tmp_path: Path) -> None:
    file = tmp_path / "edges.tsv"
    file.write_text("".join(f"{u}\t{v}\n" for u, v in EDGES), "utf-8")
    expected = WordGraph(EDGES).distances("dog").tolist()
    for edges in (file, str(file), np.array(EDGES), iter(EDGES)):
        assert WordGraph(edges).distances("dog").tolist() == expected
    file.write_text("a\tb\t0.5\nb\tc\t2\n", "utf-8")
    assert WordGraph(file, lengths=True).distance("a", "c") == 2.5


def test_lengths_are_kept_exactly_or_rounded_down_on_any_way() -> None:
    lengths = [0.1, 1 / 3, 1e-12, 1e6]
    graph = WordGraph([(f"w{i}", f"w{i + 1}") for i in range(4)], lengths)
    for i, length in enumerate(lengths):
        assert length - 1e-11 <= graph.distance(f"w{i}", f"w{i + 1}") <= length
    # An edge that is longer than the way around costs nothing.
    around = WordGraph([("a", "b"), ("b", "c"), ("a", "c")], [1.0, 1.0, 1e9])
    assert around.distance("a", "c") == 2.0
    path = WordGraph([(f"w{i}", f"w{i + 1}") for i in range(19_999)])
    assert path.distance("w0", "w19999") == 19_999
    assert len(Tem(path, 1.0).sample("w5", 10)) == 10


def test_bad_edges_are_named() -> None:
    refused(
        *((fastdx.FormatError, f"edge {len(edges) - 1}", partial(WordGraph, edges)) for edges in (
            [("a", "b"), ("c",)], [("a", "b"), "cd"], [("a", "b"), ("c", 3)], [("", "a")],
            [("a", "a")])),
        (fastdx.ParameterError, "edges", lambda: WordGraph([])),
        *((fastdx.ParameterError, "weights.*edge 0", partial(WordGraph, EDGES, [w, 1, 1, 1, 1, 1]))
          for w in (-1, np.nan, np.inf)),
        (fastdx.ParameterError, "", lambda: WordGraph(EDGES[:1], [1.7e308])),
        *((fastdx.ParameterError, "one number an edge, 6", partial(WordGraph, EDGES, wrong))
          for wrong in ([1.0], [])),
        (fastdx.ParameterError, "", lambda: WordGraph(EDGES, words=[])),
        (fastdx.ParameterError, "elm", lambda: WordGraph(EDGES, words=["oak", "elm"])),
        (fastdx.MissingFileError, "", lambda: WordGraph("no/such/file")),
    )  # fmt: skip


# Its draws: tests/it/covers.rs.
def test_tem_has_its_whole_api(tmp_path: Path) -> None:
    graph = WordGraph(EDGES)
    tem = Tem(graph, 1.5, gamma=3.0)
    assert "8 words, 6 edges, shortest-path" in repr(tem)
    law = tem.probabilities("dog")
    np.testing.assert_allclose(law, tem_law(graph.distances("dog"), 1.5, 3.0), rtol=1e-9)
    assert tem.guarantee.metric == "shortest-path"
    assert 3.0 <= tem.guarantee.bound("dog", "cat") < 3.0 + 1e-9
    assert tem.space is graph
    with pytest.raises(AttributeError, match="space"):
        _ = tem.embedding
    path = tmp_path / "graph.fdx"
    tem.save(path)
    assert_copies(tem, tem.with_epsilon(1.0).with_epsilon(1.5))
    assert (Tem.load(path, 1.5, gamma=3.0).probabilities("dog") == law).all()
    assert set(tem.privatize("dog and cat").split()) <= set(graph.words)
    np.testing.assert_array_equal(WordGraph.load(path).distances("oak"), graph.distances("oak"))


def test_an_embedding_is_no_graph(tmp_path: Path) -> None:
    path = tmp_path / "e.fdx"
    line(0, 1).save(path)
    with pytest.raises(fastdx.CorruptFileError, match="no word graph"):
        WordGraph.load(path)
    WordGraph(EDGES).save(path)
    with pytest.raises(fastdx.CorruptFileError, match="word graph and no embedding"):
        fastdx.Embedding.load(path)
    for mechanism in (fastdx.MultivariateLaplace, fastdx.HyperbolicLaplace):
        with pytest.raises(fastdx.ParameterError, match="needs vectors"):
            mechanism(WordGraph(EDGES), 20.0)  # type: ignore[arg-type]


def test_only_some_words_and_the_paths_between_them() -> None:
    words = ["oak", "dog", "pot"]
    graph = WordGraph(EDGES, words=words)
    assert graph.words == tuple(words)
    assert graph.distance("oak", "dog") == 4.0
    assert graph.distance("oak", "pot") == graph.unreachable_distance
    assert set(Tem(graph, 1.0).privatize("oak oak dog thing").split()) <= set(words)
    assert pickle.loads(pickle.dumps(graph)).words == tuple(words)
