"""Approximate search and what it does to a mechanism's law."""

import pickle
from pathlib import Path

import pytest

import fastdx
from fastdx import Embedding, MultivariateLaplace
from helpers.spaces import normal


@pytest.fixture(scope="module")
def graph() -> Embedding:
    return normal(2000, 30, 1).build_hnsw(8, ef_construction=50)


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


def test_one_seed_one_graph(small: Embedding) -> None:
    def near(seed: int) -> list[str]:
        graph = small.build_hnsw(2, ef_construction=1, seed=seed)
        madlib = MultivariateLaplace(graph, 2.0, search="hnsw", ef=1, seed=5)
        return madlib.privatize_tokens(small.words * 20)

    assert near(1) == near(1) != near(2)


def test_search_is_chosen_and_said(graph: Embedding, small: Embedding) -> None:
    assert MultivariateLaplace(small, 1.0, search="auto").spec["search"] == "exact"
    assert MultivariateLaplace(graph, 1.0, search="auto", ef=9).spec["search"] == "exact"
    built = MultivariateLaplace(small, 1.0, search="hnsw")
    assert built.spec["search"] == "hnsw" and built.embedding.has_hnsw and not small.has_hnsw
    assert "ef" not in MultivariateLaplace(graph, 1.0).spec
    for bad in ({"search": "annoy"}, {"search": "hnsw", "ef": 0}):
        with pytest.raises(fastdx.ParameterError):
            MultivariateLaplace(graph, 1.0, **bad)  # type: ignore[arg-type]
    with pytest.raises(fastdx.ParameterError, match="m must be between 2 and 128"):
        small.build_hnsw(1000)
