"""Whatever is registered is whole: every mechanism by the same tests, by that fact."""

import math
import os
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fastdx
from fastdx import Embedding, HyperbolicLaplace, Mechanism, MultivariateLaplace, Tem, WordGraph
from fastdx._core import spec_keys
from fastdx.cli.options import LAW
from fastdx.mechanisms import MECHANISMS
from helpers.bounds import allowed, assert_bound
from helpers.command import Command
from helpers.draws import as_users_draw
from helpers.liars import LIES, Lie, tell, twice_epsilon
from helpers.registry import KINDS, made, space
from helpers.spaces import line

# `make test-bounds` sets it: more cases, more draws.
LONG = int(os.environ.get("FASTDX_TEST_FACTOR", "1"))
E = [[0.0, 0.1], [1.0, 0.2], [0.9, -1.0], [-1.0, 0.7], [1.0, 0.2], [0.0, -1.2]]


def test_what_is_registered_is_exported() -> None:
    for kind in MECHANISMS.values():
        assert getattr(fastdx, kind.__name__) is kind and kind.__name__ in fastdx.__all__
        assert kind.__doc__ and kind.__module__.startswith("fastdx.mechanisms.")


@KINDS
def test_it_has_the_face_of_all(kind: type[Mechanism]) -> None:
    e = space(kind, E)
    m = made(kind, e, 2.0)
    assert isinstance(m, Mechanism) and MECHANISMS[kind.name] is kind
    assert m.space is e and m.embedding is e and m.oov == "random" and m.seed is None
    assert kind.__name__ in repr(m) and "ε" in str(m.guarantee)
    for name in ("epsilon", "embedding", "anything"):
        with pytest.raises(AttributeError):
            setattr(m, name, 1)
    if not m.has_law:
        with pytest.raises(fastdx.ParameterError, match="law can be computed"):
            m.probabilities("w1")
    at = m.with_epsilon(m.epsilon + 1.0)
    assert type(at) is kind and at.epsilon == pytest.approx(m.epsilon + 1.0)
    assert at.embedding is e and at.oov == m.oov
    out = m.privatize("w1, w2!\n w3")
    assert [c for c in out if not c.isalnum()] == list(", !\n ")
    assert {out[:2], out[4:6], out[-2:]} <= set(e.words)
    many = m.privatize(["w1", "", "w2 w3"])
    assert isinstance(many, list) and len(many) == 3 and many[1] == ""
    assert len(m.privatize_tokens(["w1", "not known"])) == 2
    for shape in [(), (0,), (7,), (2, 3), (2, 0, 3), (1, 2, 3)]:
        new = m.privatize_ids(np.zeros(shape, dtype=np.uint32))
        assert new.shape == shape and new.dtype == np.uint32
    assert m.sample("w5", 9).shape == (9,) and m.sample("w5", 0).shape == (0,)
    assert fastdx.BagOfWords(m).privatize({"w1": 2}).total() == 2
    with pytest.raises(fastdx.ParameterError, match="epsilon"):
        kind(e, -1.0)
    with pytest.raises(TypeError, match="nonsense"):
        kind(e, 2.0, nonsense=1)


def on_a_tree(e: Embedding, epsilon: float, seed: int | None = None) -> Tem:
    near = enumerate(np.abs(e.vectors[1:, 0]) * len(e), 1)
    edges = [(f"w{i}", f"w{int(x) % i}") for i, x in near]
    return Tem(WordGraph(edges), epsilon, seed=seed)


def as_published(e: Embedding, epsilon: float, seed: int | None = None) -> Mechanism:
    return HyperbolicLaplace.from_paper(e, epsilon, seed=seed)


BOUNDED: dict[str, tuple[type[Mechanism], Callable[..., Mechanism]]] = {
    **{name: (kind, partial(made, kind)) for name, kind in MECHANISMS.items()},
    "tem, no radius": (Tem, partial(made, Tem, gamma=math.inf)),
    "tem, a radius": (Tem, partial(made, Tem, gamma=0.5)),
    "tem on a tree": (Tem, on_a_tree),
    "hyperbolic, as published": (HyperbolicLaplace, as_published),
}


@pytest.mark.parametrize("name", BOUNDED)
# A lie is found at once, and not made smaller.
@settings(max_examples=10 * LONG, phases=[Phase.generate])
@given(
    rows=st.lists(st.tuples(*[st.floats(-2, 2)] * 2), min_size=2, max_size=4),
    epsilon=st.sampled_from([1e-3, 0.3, 1.0, 3.0, 1e3]),
)
def test_the_bound_holds(name: str, rows: list[tuple[float, float]], epsilon: float) -> None:
    kind, make = BOUNDED[name]
    e = space(kind, [list(r) for r in rows])
    drawn = as_users_draw(make(e, epsilon, seed=1))
    assert_bound(drawn, make(e, epsilon).guarantee, 10_000 * LONG)


@pytest.mark.parametrize(
    ("lie", "name"), [*product(LIES, BOUNDED), (twice_epsilon, MultivariateLaplace.name)]
)
def test_liars_are_convicted(lie: Lie, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, lie)
    with pytest.raises(AssertionError, match="REFUTED"):
        test_the_bound_holds(name=name)


def test_nothing_is_compared_with_a_guarantee_that_allows_everything() -> None:
    e = line(0, 1)
    seeded = Tem(e, 1.0, seed=1)
    with pytest.raises(AssertionError, match="SEEDED"):
        assert_bound(seeded, seeded.guarantee)
    skipping = Tem(e, 1.0, skip=["a"]).guarantee
    with pytest.raises(AssertionError, match="nothing can be refuted"):
        allowed(skipping, "a", "b")


# How it privatises: test_spec.py.
@KINDS
def test_the_command_offers_it(kind: type[Mechanism], tmp_path: Path, command: Command) -> None:
    shown = command("privatize", "--help-all").out
    own = {key for key, kinds in spec_keys() if kind.name in kinds} & {*LAW, "epsilon", "cover"}
    assert kind.name in shown and own and all(f"--{key} " in shown for key in own)
    path = tmp_path / "e.fdx"
    space(kind, E).save(path)
    page = tmp_path / "page.html"
    command("calibrate", "--mechanism", kind.name, "--embedding", path, "--draws", "50",
            "--min-outputs", "1", "--max-unchanged", "0.9", "-o", page)  # fmt: skip
    assert page.stat().st_size > 1000
