"""Word graphs from Python: construction, Tem on them, files, errors."""

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Tem, WordGraph
from helpers.copies import assert_copies
from helpers.errors import refused
from helpers.laws import tem_law
from helpers.spaces import line

EDGES = [("dog", "animal"), ("cat", "animal"), ("oak", "plant"), ("plant", "thing"),
         ("animal", "thing"), ("pan", "pot")]  # fmt: skip


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


# Its draws: tests/it/graph.rs.
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
