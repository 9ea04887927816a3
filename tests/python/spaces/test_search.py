"""Neighbour lists and graphs, built once for many calls."""

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, MultivariateLaplace, Tem
from helpers.errors import refused
from helpers.spaces import normal


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
