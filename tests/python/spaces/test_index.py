"""Tem with stored neighbour lists."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, Tem
from helpers.draws import assert_draws


def test_lists_change_nothing_but_speed(small: Embedding, tmp_path: Path) -> None:
    tem = Tem(small, 2.0, oov="mask", skip=["w9"], seed=4)
    seen: list[int] = []
    listed = tem.build_lists(7, progress=seen.append)
    assert tem.lists_k is None and listed.lists_k == 7
    assert (listed.oov, listed.skip, listed.epsilon) == ("mask", {"w9"}, 2.0)
    assert np.array_equal(listed.probabilities("w3"), tem.probabilities("w3"))
    assert listed.with_epsilon(3.0).lists_k == 7
    assert pickle.loads(pickle.dumps(listed)).lists_k == 7
    listed.save(tmp_path / "index")
    for verify in (True, False):
        back = Tem.load(tmp_path / "index", 2.0, verify=verify, seed=4, gamma=0.5)
        assert back.lists_k == 7 and back.gamma == 0.5 and back.epsilon == 2.0
    assert Tem(Embedding.load(tmp_path / "index"), 1.0).lists_k == 7
    assert_draws(Tem.load(tmp_path / "index", 2.0), "w3", tem.probabilities("w3"))


def test_lists_by_gamma(small: Embedding, tmp_path: Path) -> None:
    tem = Tem(small, 2.0, gamma=0.5)
    listed = tem.build_lists(lists="gamma")
    assert listed.lists_k is None and abs(listed._details["lists_radius"] - 0.5) < 1e-9
    listed.save(tmp_path / "index")
    radius = Tem.load(tmp_path / "index", 2.0)._details["lists_radius"]
    assert radius == listed._details["lists_radius"]
    assert_draws(listed, "w3", tem.probabilities("w3"))
    with pytest.raises(fastdx.ParameterError, match="left out"):
        tem.build_lists(3, lists="gamma")
    with pytest.raises(fastdx.ParameterError, match="'nearest' or 'gamma'"):
        tem.build_lists(lists="all")


def test_bad_lists(small: Embedding, tmp_path: Path) -> None:
    tem = Tem(small, 2.0)
    with pytest.raises(fastdx.TooLargeError, match="need 4000 bytes, and 3999 are allowed") as e:
        tem.build_lists(10, memory=3999)
    assert isinstance(e.value, MemoryError)
    for k in (0, 51):
        with pytest.raises(ValueError, match="k must be between 1 and the 50"):
            tem.build_lists(k)
    with pytest.raises(ZeroDivisionError):
        Tem(epsilon=1.0).build_lists(1000, progress=lambda done: 1 // 0)
    with pytest.raises(TypeError):
        Tem.load(tmp_path / "none")  # type: ignore[call-arg]
    with pytest.raises(FileNotFoundError):
        Tem.load(tmp_path / "none", 1.0)
