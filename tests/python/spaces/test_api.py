"""The API as users rely on it, and what is built once for many calls: lists and graphs."""

import pickle
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import distance

import fastdx
from fastdx import Embedding, MultivariateLaplace, NeighborResponse, Tem
from helpers.errors import refused
from helpers.spaces import normal


def test_embedding_properties(small: Embedding) -> None:
    assert small.words[3] == "w3" and len(small) == 50 and small.dim == 4
    assert "w7" in small and "nope" not in small and 7 not in small
    assert small.vectors.dtype == np.float32 and small.vectors.shape == (50, 4)
    assert small.ids(["w3", "w0"]).tolist() == [3, 0]
    assert small.ids(["w3"]).dtype == np.uint32
    assert repr(small) == "Embedding(50 words × 4, euclidean)"


def test_vectors_are_a_read_only_view_that_outlives_the_embedding() -> None:
    e = Embedding(["a", "b"], [[1.0, 2.0], [3.0, 4.0]])
    first, second = e.vectors, e.vectors
    assert first.ctypes.data == second.ctypes.data
    with pytest.raises(ValueError):
        first[0, 0] = 9.0
    with pytest.raises(ValueError):
        first.flags.writeable = True
    del e, second
    assert first.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", ">f4"])
def test_any_real_dtype_and_order_is_taken(dtype: str, order: str) -> None:
    vectors = np.array([[1, 2, 3], [4, 5, 6]], dtype=dtype, order=order)
    assert Embedding(["a", "b"], vectors).vectors.tolist() == [[1, 2, 3], [4, 5, 6]]
    strided = np.array([[1, 0, 2, 0], [3, 0, 4, 0]], dtype=dtype)[:, ::2]
    assert Embedding(["a", "b"], strided).vectors.tolist() == [[1, 2], [3, 4]]


# Every metric, and exact search: src/distance.
def test_distances_and_nearest_words(small: Embedding) -> None:
    vectors = small.vectors.astype(float)
    queries = vectors[:9] + 0.01
    found = distance.cdist(queries, vectors)
    ids, distances = small.nearest(queries, k=7)
    assert ids.shape == distances.shape == (9, 7) and ids.dtype == np.uint32
    np.testing.assert_allclose(distances, np.sort(found)[:, :7], rtol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(found, ids.astype(int), 1), distances, rtol=1e-6)
    own = small.distances("w9")
    np.testing.assert_allclose(own, distance.cdist(vectors[9:10], vectors)[0], rtol=1e-12)
    assert own.dtype == distances.dtype == np.float64
    assert small.distance("w9", "w4") == small.distance("w4", "w9") == own[4]


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">u4", ">i8"])
def test_ids_of_any_whole_dtype(small: Embedding, mechanism: type, dtype: str) -> None:
    # Not Tem with γ from β, which changes a word with probability β at every ε.
    m = Tem(small, 1e9, gamma=np.inf) if mechanism is Tem else mechanism(small, 1e9)
    ids = np.arange(40, dtype=dtype).reshape(5, 8)
    assert np.array_equal(m.privatize_ids(ids), ids)
    assert np.array_equal(m.privatize_ids(ids.T), ids.T)
    assert np.array_equal(m.privatize_ids(ids[::2, ::-1]), ids[::2, ::-1])
    assert np.array_equal(m.privatize_ids(ids.tolist()), ids)


def test_gamma_is_kept_at_another_epsilon(small: Embedding) -> None:
    for given in ({"gamma": 0.5}, {"beta": 0.01}):
        tem, direct = Tem(small, 4.0, **given).with_epsilon(8.0), Tem(small, 8.0, **given)
        assert tem.gamma == direct.gamma and (tem.gamma == 0.5) == ("gamma" in given)


def test_perturb_adds_laplace_noise(small: Embedding) -> None:
    m = MultivariateLaplace(small, 2.0)
    noisy = m.perturb(np.repeat(small.vectors[:1], 20_000, axis=0))
    radius = np.linalg.norm(noisy - small.vectors[0], axis=1)
    assert noisy.dtype == np.float64 and abs(radius.mean() - 2.0) < 6 * 1.0 / np.sqrt(20_000)


def test_the_guarantee_reads_as_a_sentence(small: Embedding, mechanism: type) -> None:
    g = mechanism(small, 2.0).guarantee
    local = mechanism is NeighborResponse
    assert (g.metric.split()[0], g.epsilon, g.delta) == ("discrete" if local else "euclidean", 2, 0)
    assert "sum" in g.scope and g.theorem and g.arithmetic and g.exceptions
    text = str(g)
    assert f"ε = 2 per unit of {g.metric} distance" in text and text.endswith(".")


# Of known words, and under other policies: test_claims.py.
def test_bounds_of_unknown_words(small: Embedding, mechanism: type) -> None:
    unknown = mechanism(small, 2.0).guarantee.bound("w1", "zzz")
    # The law of a known word is between those of its nearest and its farthest word.
    across = 2 * max(small.distances("w0"))
    proved = {Tem: pytest.approx(min(Tem(small, 2.0).gamma, across)), NeighborResponse: 2.0}
    assert unknown == proved.get(mechanism, np.inf)


# Pickles of mechanisms: test_spec.py.
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_pickles(small: Embedding, protocol: int) -> None:
    copy = pickle.loads(pickle.dumps(small, protocol))
    assert copy.words == small.words and np.array_equal(copy.vectors, small.vectors)
    m = MultivariateLaplace(small, 2.5, oov="mask", skip=["w4"], consistent=True, pad=1e-4, seed=3)
    back = pickle.loads(pickle.dumps(m, protocol))
    assert repr(back) == repr(m) and back.skip == m.skip == {"w4"} and back.pad == 1e-4
    assert str(pickle.loads(pickle.dumps(m.guarantee, protocol))) == str(m.guarantee)


def test_there_is_no_mechanism_as_such() -> None:
    with pytest.raises(TypeError):
        fastdx.Mechanism()


def test_padded_calls_take_whole_multiples(small: Embedding) -> None:
    tem = Tem(small, 2.0, pad=0.02)
    assert pickle.loads(pickle.dumps(tem)).pad == tem.with_epsilon(1.0).pad == 0.02
    for call in (lambda: tem.privatize("w1 w2"), lambda: tem.sample("w3", 5)):
        start = time.perf_counter()
        call()
        assert time.perf_counter() - start >= 0.02
    # Below what a clock counts: no padding, and no panic.
    assert Tem(small, 2.0, pad=1e-12).privatize("w1")
    assert MultivariateLaplace(small, 2.0).pad is None


@pytest.fixture(scope="module")
def graph() -> Embedding:
    return normal(200, 8, 1).build_hnsw(8, ef_construction=50)


def test_a_graph_is_built_again_after_loading(graph: Embedding, tmp_path: Path) -> None:
    graph.save(tmp_path / "index")
    for loaded in (pickle.loads(pickle.dumps(graph)), Embedding.load(tmp_path / "index")):
        assert graph.has_hnsw and not loaded.has_hnsw
    madlib = MultivariateLaplace(graph, 30.0, search="hnsw", ef=40)
    again = pickle.loads(pickle.dumps(madlib))
    for same in (again, madlib.with_epsilon(2.0)):
        assert (same.spec["search"], same.spec["ef"]) == ("hnsw", 40)
    assert again.embedding.has_hnsw and len(again.sample("w1", 5)) == 5
    assert "hnsw" in repr(madlib) and madlib.guarantee.epsilon == 30.0


def test_search_is_chosen_and_said(graph: Embedding, small: Embedding) -> None:
    assert MultivariateLaplace(small, 1.0, search="auto").spec["search"] == "exact"
    assert MultivariateLaplace(graph, 1.0, search="auto", ef=9).spec["search"] == "exact"
    built = MultivariateLaplace(small, 1.0, search="hnsw")
    assert built.spec["search"] == "hnsw" and built.embedding.has_hnsw and not small.has_hnsw
    assert "ef" not in MultivariateLaplace(graph, 1.0).spec
    refused(
        *((fastdx.ParameterError, "m must be|ef_construction must be",
           partial(small.build_hnsw, m, ef_construction=ef))
          for m, ef in ((0, 10), (1, 10), (129, 10), (4, 0), (4, 10_001))),
        (fastdx.ParameterError, "ef must be",
         lambda: MultivariateLaplace(graph, 1.0, search="hnsw", ef=0)),
    )  # fmt: skip


# Their law: tests/it/lists.rs.
def test_lists_change_nothing_but_speed(small: Embedding, tmp_path: Path) -> None:
    tem = Tem(small, 2.0, oov="mask", skip=["w9"], seed=4)
    listed = tem.build_lists(7)
    assert tem.lists_k is None and listed.lists_k == 7 and listed == tem
    assert np.array_equal(listed.probabilities("w3"), tem.probabilities("w3"))
    assert listed.with_epsilon(3.0).lists_k == 7
    assert pickle.loads(pickle.dumps(listed)).lists_k == 7
    listed.save(tmp_path / "index")
    for verify in (True, False):
        back = Tem.load(tmp_path / "index", 2.0, verify=verify, seed=4, gamma=0.5)
        assert back.lists_k == 7 and back.gamma == 0.5 and back.epsilon == 2.0
    assert Tem(Embedding.load(tmp_path / "index"), 1.0).lists_k == 7
    for other in ({"metric": "manhattan"}, {"limit": 30}):
        assert Tem(Embedding.load(tmp_path / "index", **other), 1.0).lists_k is None


def test_bad_lists(small: Embedding, tmp_path: Path) -> None:
    tem, none = Tem(small, 2.0), tmp_path / "none"
    assert issubclass(fastdx.TooLargeError, MemoryError)
    assert tem.build_lists(10, memory=4000).lists_k == 10
    refused(
        (fastdx.TooLargeError, "need 4000 bytes, and 3999 are allowed",
         lambda: tem.build_lists(10, memory=3999)),
        *((ValueError, "k must be between 1 and the 50", partial(tem.build_lists, k))
          for k in (0, 51)),
        (ZeroDivisionError, "",
         lambda: Tem(epsilon=1.0).build_lists(1000, progress=lambda done: 1 // 0)),
        (TypeError, "", lambda: Tem.load(none)),  # type: ignore[call-arg]
        (FileNotFoundError, "", lambda: Tem.load(none, 1.0)),
    )  # fmt: skip
