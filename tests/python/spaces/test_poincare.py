"""Training Poincaré embeddings."""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, poincare
from helpers.errors import refused


def tree(depth: int = 4, width: int = 3) -> list[tuple[str, str]]:
    """Every node of a tree below each of its ancestors."""
    edges, level = [], [("r",)]
    for _ in range(depth):
        level = [(*path, f"{path[-1]}{i}") for path in level for i in range(width)]
        edges += [(path[-1], above) for path in level for above in path[:-1]]
    return edges


def test_a_tree_is_given_back() -> None:
    edges = tree()
    losses: list[float] = []
    e = poincare.train(edges, 5, epochs=150, seed=1, threads=1,
                       callback=lambda epoch, loss: losses.append(loss))  # fmt: skip
    assert (e.metric, e.dim, len(e), len(losses)) == ("poincare", 5, 121, 150)
    assert losses[-1] < losses[0] / 4
    found = poincare.reconstruction(e, edges)
    assert 1 <= found.mean_rank < 3 and found.map > 0.85
    # The root in the middle, leaves outside.
    norms = np.linalg.norm(e.vectors, axis=1)
    depth = np.array([len(w) - 1 for w in e.words])
    means = [norms[depth == d].mean() for d in range(5)]
    assert all(a < b for a, b in pairwise(means)) and norms.max() <= 1 - 0.9e-5
    both = poincare.train(edges, 5, epochs=150, threads=2)
    assert poincare.reconstruction(both, edges).map > 0.8


def test_one_thread_one_result() -> None:
    def run(seed: int) -> np.ndarray:
        return poincare.train(tree(3), 3, epochs=5, seed=seed, threads=1).vectors

    assert np.array_equal(run(7), run(7)) and not np.array_equal(run(7), run(8))


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    def stop(epoch: int, loss: float) -> None:
        if epoch == 4:
            raise KeyboardInterrupt

    def run(**more: object) -> Embedding:
        return poincare.train(tree(3), 3, epochs=9, seed=7, threads=1, **more)  # type: ignore[arg-type]

    file = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=file, callback=stop)
    epochs: list[int] = []
    resumed = run(checkpoint=file, callback=lambda epoch, loss: epochs.append(epoch))
    assert epochs == [5, 6, 7, 8, 9]
    assert poincare.reconstruction(resumed, tree(3)).map > 0.2
    assert [f.name for f in tmp_path.iterdir()] == ["run"]
    with pytest.raises(fastdx.ParameterError, match="another run"):
        poincare.train(tree(2), 3, epochs=9, checkpoint=file)


def test_reconstruction_by_hand() -> None:
    e = Embedding(["a", "b", "c", "d"], [[0.0], [0.1], [0.3], [-0.2]], metric="poincare")
    # From a: b, then d, then c. Edges a-c: rank 3 among {c} and the non-targets b, d.
    assert poincare.reconstruction(e, [("a", "c")]) == (3.0, pytest.approx(1 / 3))
    # Targets b and c: b first (precision 1), c behind d (2/3).
    found = poincare.reconstruction(e, [("a", "c"), ("a", "b")])
    assert found == (pytest.approx(1.5), pytest.approx((1 + 2 / 3) / 2))


def test_edges_are_read_and_refused(tmp_path: Path) -> None:
    file = tmp_path / "edges.tsv"
    file.write_text("dog\tanimal\n\ncat\tanimal\n")
    a = poincare.train(file, 2, epochs=2, seed=1, threads=1)
    b = poincare.train(np.array([["dog", "animal"], ["cat", "animal"]]), 2, epochs=2, seed=1,
                       threads=1)  # fmt: skip
    assert a.words == b.words == ("dog", "animal", "cat") and np.array_equal(a.vectors, b.vectors)
    file.write_text("dog\tanimal\ncat\n")
    refused(
        (fastdx.FormatError, "line 2", lambda: poincare.train(file, 2)),
        # Other bad edges: test_graph.py.
        (fastdx.FormatError, "edge 0", lambda: poincare.train([("a", "a")], 2)),
        (fastdx.ParameterError, "edges", lambda: poincare.train([], 2)),
        *((fastdx.ParameterError, name, partial(poincare.train, [("a", "b")], 2, **{name: 0}))
          for name in ("epochs", "negatives", "threads", "lr")),
        (fastdx.UnknownWordError, "", lambda: poincare.reconstruction(a, [("dog", "plant")])),
    )  # fmt: skip
