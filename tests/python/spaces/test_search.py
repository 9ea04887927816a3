"""Approximate search and what it does to a mechanism's law."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, MultivariateLaplace
from helpers.command import python
from helpers.spaces import normal

# The answers of a file's graph, in a process of its own.
SEARCH = """
import sys
from fastdx import Embedding, MultivariateLaplace
e = Embedding.load(sys.argv[1])
try:
    madlib = MultivariateLaplace(e, 30.0, search="hnsw", ef=20, seed=5)
except OSError as error:
    print(error)
else:
    print(*madlib.privatize_tokens(e.words[:300]))
"""


@pytest.fixture(scope="module")
def graph() -> Embedding:
    return normal(2000, 30, 1).build_hnsw(8, ef_construction=50)


def test_a_graph_travels_with_its_embedding(graph: Embedding, tmp_path: Path) -> None:
    assert graph.has_hnsw and pickle.loads(pickle.dumps(graph)).has_hnsw
    graph.save(tmp_path / "index")
    assert Embedding.load(tmp_path / "index").has_hnsw
    madlib = MultivariateLaplace(graph, 30.0, search="hnsw", ef=40, seed=3)
    again = pickle.loads(pickle.dumps(madlib))
    assert (again.search, again.ef, madlib.with_epsilon(2.0).ef) == ("hnsw", 40, 40)
    assert np.array_equal(madlib.sample("w1", 500), again.sample("w1", 500))
    assert "hnsw" in repr(madlib) and madlib.guarantee.epsilon == 30.0


def test_a_loaded_graph_answers_as_the_built_one_and_leaves_no_file(
    graph: Embedding, tmp_path: Path
) -> None:
    graph.save(tmp_path / "index")
    folder = tmp_path / "temporary"
    folder.mkdir()

    def searched(temporary: Path) -> str:
        return python(SEARCH, tmp_path / "index", TMPDIR=str(temporary)).stdout.strip()

    madlib = MultivariateLaplace(graph, 30.0, search="hnsw", ef=20, seed=5)
    expected = madlib.privatize_tokens(graph.words[:300])
    assert searched(folder).split() == expected
    assert not list(folder.iterdir())
    exact = MultivariateLaplace(graph, 30.0, seed=5).privatize_tokens(graph.words[:300])
    assert exact != expected
    # hnsw_rs reads a graph from files alone.
    assert str(tmp_path / "nowhere") in searched(tmp_path / "nowhere")


def test_a_graph_is_of_the_words_the_parameters_and_the_seed(small: Embedding) -> None:
    built = [small.build_hnsw(3, ef_construction=9, seed=seed) for seed in (1, 1, 2)]
    one, again, other = (pickle.dumps(e) for e in built)
    assert one == again and one != other


def test_search_is_chosen_and_said(graph: Embedding, small: Embedding) -> None:
    assert MultivariateLaplace(small, 1.0, search="auto").search == "exact"
    assert MultivariateLaplace(graph, 1.0, search="auto", ef=9).search == "exact"
    built = MultivariateLaplace(small, 1.0, search="hnsw")
    assert built.search == "hnsw" and built.embedding.has_hnsw and not small.has_hnsw
    assert MultivariateLaplace(graph, 1.0).ef is None
    for bad in ({"search": "annoy"}, {"search": "hnsw", "ef": 0}):
        with pytest.raises(fastdx.ParameterError):
            MultivariateLaplace(graph, 1.0, **bad)  # type: ignore[arg-type]
    with pytest.raises(fastdx.ParameterError, match="m must be between 2 and 128"):
        small.build_hnsw(1000)


def test_a_distorted_law_is_warned_about(graph: Embedding, small: Embedding) -> None:
    madlib = MultivariateLaplace(graph, 5.0)
    with pytest.warns(fastdx.FastdxWarning, match="distorts the mechanism's law"):
        poor = madlib.search_quality(draws=100, ef=1)
    assert poor.recall < 0.9 and poor.warning is not None
    assert poor.words == 100 and poor.draws == 100
    good = madlib.search_quality(["w1", "w2"], draws=300, ef=2000)
    assert good.recall == 1.0 and good.total_variation == 0.0 and good.distance_ratio == 1.0
    assert good.warning is None and good.worst[0] in ("w1", "w2") and "recall" in repr(good)
    with pytest.raises(fastdx.ParameterError, match="HNSW"):
        MultivariateLaplace(small, 1.0).search_quality()
