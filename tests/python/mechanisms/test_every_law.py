"""Whatever is registered, a law or a mechanism whose law can be computed, keeps its price."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fastdx
from fastdx import (
    Cover,
    Embedding,
    FiniteLaw,
    Mechanism,
    NeighborResponse,
    Tem,
    WordGraph,
    from_spec,
)
from fastdx.lab import audit, laws
from fastdx.lab.comparison import PUBLISHED, VARIANTS, Family, families, family_names
from fastdx.lab.laws import Law
from fastdx.mechanisms import MECHANISMS
from helpers.bounds import slack
from helpers.draws import as_users_draw, assert_draws
from helpers.laws import distances_of, largest_ratio, law_of
from helpers.spaces import line, normal, numbered

TINY, HUGE = 1e-6, 1e3
# The programme's solver sees no constraint beyond its own accuracy: it is asked for less.
SOLVED = (1e-3, 60.0)
DOMAIN = {"truncated-laplace": (TINY, 0.49), "optimal": SOLVED, "optimal, a prior": SOLVED}
ON_A_LINE = ("vickrey-line", "vickrey-line, the second", "truncated-laplace")
UNPROVED = ("truncated-laplace", "words-blending-boxes")
"""Their loss is infinite, as test_laws.py shows."""


def finite_names() -> list[str]:
    """All that has a law: found by making each, so that none can be forgotten."""
    ball = Embedding(["a", "b", "c"], [[0.0], [0.3], [0.5]], metric="poincare")
    found = []
    for space in (line(0.0, 1.0, 3.0), ball):
        for name, family in families(space).items():
            made = family.make(min(family.epsilons[0] + 0.3, family.epsilons[1]))
            if (isinstance(made, Law) or made.has_law) and name not in found:
                found.append(name)
    return found


FINITE = finite_names()


def half(e: Embedding) -> int:
    return (len(e) + 1) // 2


def any_sets(e: Embedding) -> Cover:
    """Of some outputs, each standing for some words."""
    rng = np.random.default_rng(abs(int(e.vectors.sum())))
    sizes = rng.integers(1, len(e) + 1, size=half(e))
    return Cover.from_sets(e, {e.words[i]: list(rng.choice(e.words, n))
                               for i, n in enumerate(sizes)})  # fmt: skip


OWN: dict[str, Callable[[Embedding, float], Mechanism | Law]] = {
    "tem, no radius": lambda e, x: Tem(e, x, gamma=math.inf),
    "cover": lambda e, x: Tem(e, x, cover=half(e)),
    "cover, no radius": lambda e, x: Tem(e, x, cover=half(e), gamma=math.inf),
    "cover of any sets": lambda e, x: Tem(e, x, cover=any_sets(e)),
    "response of any sets": lambda e, x: NeighborResponse(e, x, cover=any_sets(e)),
    "weights": lambda e, x: Tem(
        e, x, gamma=math.inf, cover=Cover.identity(e).weighted(np.arange(len(e)) + 1.0)),
    "language": lambda e, x: Tem(e, x, language=np.arange(len(e)) + 1.0, cover=half(e)),
    "excluded": lambda e, x: Tem(e, x, exclude=e.words[1:2]),
    "remap": lambda e, x: Tem(e, x, remap=half(e)),
    "response, excluded": lambda e, x: NeighborResponse(
        e, x, cover=half(e), exclude=e.words[half(e):]),
    "santext-plus, half": lambda e, x: laws.santext_plus(e, x, e.words[len(e) // 2 :], replace=0.4),
    "custext, any outputs": lambda e, x: laws.custext(e, x, len(e), partition=False),
    "neighbours of ranks": lambda e, x: laws.with_neighbors(laws.rank_based(e, x), x),
    "diffractor, a radius": lambda e, x: laws.one_diffractor(e, x, method="tem", gamma=2),
    "diffractor, two lines": lambda e, x: laws.one_diffractor(
        e, x, orders=[np.arange(len(e)), np.argsort(np.sin(np.arange(len(e))))]),
    "vickrey-line, the second": lambda e, x: laws.vickrey(e, x, 0.9),
    "syntf, ratings": lambda e, x: laws.syntf(e, x, np.sin(np.outer(*[np.arange(len(e)) + 1] * 2))),
    "blahut-arimoto, a prior": lambda e, x: laws.blahut_arimoto(e, x, np.arange(len(e)) + 1.0),
    "optimal, a prior": lambda e, x: laws.optimal(e, x, prior=np.arange(len(e)) + 1.0),
}  # fmt: skip
"""With other parameters than the registry's."""


def test_none_escapes() -> None:
    assert {*PUBLISHED, *VARIANTS, "tem", "response"} == set(FINITE)
    # Mechanisms that are not here have no law, and say so.
    e = Embedding(["a", "b"], np.eye(2, 3))
    ball = Embedding(["a", "b"], np.eye(2, 3) / 3, metric="poincare")
    for name in set(family_names()) - set(FINITE):
        space = ball if MECHANISMS[name].default_space != "english" else e
        m = MECHANISMS[name](space, 5.0)
        assert not m.has_law


def family(name: str, space: Embedding) -> Family:
    return families(space, [name])[name]


def make(name: str, e: Embedding, epsilon: float) -> Mechanism | Law:
    return OWN[name](e, epsilon) if name in OWN else family(name, e).make(epsilon)


def price_of(made: Mechanism | Law) -> tuple[float, np.ndarray | None, np.ndarray | None]:
    """ε proved, the distances that it is per unit of (None: any two words), and the groups."""
    space = made.space
    if isinstance(made, Law):
        row, groups = made.proved.distances, made.proved.groups
        d = None if row is None else np.array([row(i) for i in range(len(space))], float)
        return made.proved.epsilon, d, groups
    if made.guarantee.metric.startswith("discrete"):
        return made.epsilon, None, None
    return made.epsilon, distances_of(space), None


@pytest.mark.parametrize("name", [*FINITE, *OWN])
@settings(max_examples=25)
@given(
    count=st.integers(1, 9),
    dim=st.integers(1, 3),
    epsilon=st.sampled_from([TINY, 1e-2, 1.0, 20.0, HUGE]),
    scale=st.sampled_from([1e-3, 1.0, 100.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_it_is_a_law_at_its_price(
    name: str, count: int, dim: int, epsilon: float, scale: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # Whole numbers: words at one place, and ties.
    dim = 1 if name in ON_A_LINE else dim
    points = rng.integers(-3, 4, size=(count, dim)) * scale
    e = numbered(points)
    epsilon = float(np.clip(epsilon, *DOMAIN.get(name, (TINY, HUGE))))
    alone = np.ptp(points, axis=0).max() == 0
    if (name in ON_A_LINE and alone) or (name == "words-blending-boxes" and count == 1):
        # There is no such law, and the error says what is missing.
        with pytest.raises(fastdx.ParameterError, match=r"distance|safe"):
            make(name, e, epsilon)
        return
    made = make(name, e, epsilon)
    matrix = law_of(made)
    assert matrix.shape == (count, count) and np.isfinite(matrix).all()
    assert (matrix >= 0).all() and np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12
    proved, distances, groups = price_of(made)
    assert math.isfinite(proved) or name in UNPROVED
    lost = largest_ratio(matrix, distances, groups)
    # Rounding of a probability, per unit of the least distance.
    away = distances_of(e)
    apart = float(away[away > 0].min()) if away.any() else 1.0
    more = 0.0 if isinstance(made, Law) else slack(made.guarantee)
    assert lost <= proved * (1 + 1e-9) + (1e-12 + more) / (1.0 if distances is None else apart)
    # The certificate, of the law or of what draws it, is the same number.
    found = audit.certify(made, metric=e)
    assert isinstance(found, audit.LargestLoss)
    assert found.local == pytest.approx(largest_ratio(matrix), rel=1e-6, abs=1e-12)
    if isinstance(made, Law):
        drawn = FiniteLaw(law=made)
        assert drawn.local is not None
        if (matrix[matrix > 0] > 2.0**-60).all():
            assert drawn.local == pytest.approx(found.local, rel=1e-6, abs=1e-12)
            assert drawn.epsilon == pytest.approx(found.epsilon, rel=1e-6, abs=1e-12 / apart)
        elif math.isfinite(found.epsilon):
            # Integers are rounded down, to 1 at least: by a factor below 2.
            assert drawn.local <= found.local + math.log(2)
            assert drawn.epsilon <= found.epsilon + math.log(2) / apart


@pytest.mark.parametrize("name", [*FINITE, *OWN])
@settings(max_examples=4)
@given(
    count=st.integers(3, 9),
    spread=st.sampled_from([0.0, 1.0, 30.0]),
    epsilon=st.sampled_from([2.0, 150.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_its_loss_is_that_of_brute_force_in_any_metric(
    name: str, count: int, spread: float, epsilon: float, seed: int
) -> None:
    assume(spread > 0 or name not in ON_A_LINE)
    rng = np.random.default_rng(seed)
    # Rounded, so that some words are at one place.
    e = numbered((spread * rng.normal(size=(count, 1 if name in ON_A_LINE else 2))).round(1))
    m = make(name, e, float(np.clip(epsilon, *DOMAIN.get(name, (TINY, HUGE)))))
    names, matrix = list(e.words), law_of(m)
    other = numbered(rng.normal(size=(count, 3)), "manhattan")
    tree = WordGraph([(f"w{int(rng.integers(0, i))}", f"w{i}") for i in range(1, count)])
    assert list(tree.words) == names
    table = distances_of(other) + 0.25
    np.fill_diagonal(table, 0.0)
    apart = table.copy()
    apart[0, 1:] = apart[1:, 0] = math.inf
    steps = np.abs(np.arange(count)[:, None] - np.arange(count)).astype(float)
    metrics: list[tuple[Any, np.ndarray]] = [
        *((space, distances_of(space)) for space in (other, e, tree)),
        (table, table), (apart.tolist(), apart),
        (lambda a, b: abs(int(a[1:]) - int(b[1:])), steps),
    ]  # fmt: skip
    for metric, distances in metrics:
        found = audit.certify(m, metric=metric)
        assert isinstance(found, audit.LargestLoss)
        unit, local = largest_ratio(matrix, distances), largest_ratio(matrix)
        assert found.local == pytest.approx(local, rel=1e-9, abs=1e-12)
        if math.isinf(local) and isinstance(metric, Embedding | WordGraph):
            # A space's distances are finite.
            assert math.isinf(found.epsilon)
        else:
            assert found.epsilon == pytest.approx(unit, rel=1e-9, abs=1e-9)
        # The words and outputs that it names attain it.
        for loss, (a, b), y, d in (
            (found.epsilon, found.pair, found.output, distances),
            (found.local, found.local_pair, found.local_output, np.ones_like(distances)),
        ):
            i, j, k = (names.index(w) for w in (a, b, y))
            if 0 < loss < math.inf:
                ratio = np.log(matrix[i, k]) - np.log(matrix[j, k])
                assert ratio / d[i, j] == pytest.approx(loss, rel=1e-6, abs=1e-9)
            elif loss == math.inf and d[i, j] > 0:
                assert matrix[i, k] > 0 and matrix[j, k] == 0


@pytest.mark.parametrize("name", FINITE)
def test_what_is_drawn_is_the_law(name: str) -> None:
    dim = 1 if name in ON_A_LINE else 3
    e = normal(15, dim, 4)
    made = make(name, e, 0.45 if name in DOMAIN else 2.0)
    if isinstance(made, Law):
        m: Mechanism = FiniteLaw(law=made, seed=21)
    else:
        m = from_spec({**made.spec, "seed": 21}, **made._held())
    law = law_of(made)
    for drawing in (m, as_users_draw(m)):
        for word in (0, 12):
            assert_draws(drawing, f"w{word}", law[word])


SPACE = normal(6, 1, 1)
SOUND: dict[str, Any] = {
    "k": 3,
    "sensitive": ["w1"],
    "bound": 2.0,
    "ratings": np.eye(6),
    "rate": 0.1,
}
"""Arguments of the functions beside the words and ε."""
NOT_POSITIVE = (0.0, -1.0, math.nan, math.inf)
WRONG: dict[str, tuple[Any, ...]] = {
    "epsilon": NOT_POSITIVE,
    "bound": NOT_POSITIVE,
    "rate": NOT_POSITIVE,
    "replace": (-0.1, 1.1, math.nan),
    "t": (-0.1, 1.1, math.nan),
    "sensitive": ([], ["nobody"]),
    "keep": (["nobody"],),
    "k": (0, 7, 2.5),
    "safe": (0, 6, 1.5),
    "candidates": (0, -3),
    "gamma": (-1, 1.5),
    "method": ("laplace", ""),
    "orders": ([], [np.zeros(6, int)], [np.arange(5)]),
    "iterations": (-1, 2.5),
    "ratings": (np.zeros((5, 6)), np.full((6, 6), np.nan)),
    "loss": (np.zeros((5, 6)), np.full((6, 6), np.inf)),
    "prior": (np.zeros(6), np.ones(5), -np.ones(6), np.full(6, np.nan)),
    "gap": (-1.0, math.nan),
}
# A bool has no wrong value.
FLAGS = {"partition"}
UNKNOWN = "not in the vocabulary"


def laws_of_words() -> list[Callable[..., Law]]:
    """The functions of `laws` that make a law of words, or of a law."""
    made = [getattr(laws, name) for name in laws.__all__]
    made = [f for f in made if inspect.isfunction(f) and f.__annotations__["return"] == "Law"]
    return [f for f in made if next(iter(inspect.signature(f).parameters)) in ("space", "law")]


def test_every_law_has_a_name() -> None:
    said = [known.about for known in PUBLISHED.values()]
    for function in laws_of_words():
        assert any(about.startswith(f"laws.{function.__name__}: ") for about in said), function


@pytest.mark.parametrize("function", laws_of_words(), ids=lambda f: f.__name__)
def test_every_bad_parameter_is_refused_by_name(function: Callable[..., Law]) -> None:
    parameters = list(inspect.signature(function).parameters)
    first: object = laws.santext(SPACE, 1.0) if parameters[0] == "law" else SPACE
    own = {p: SOUND[p] for p in parameters[1:] if p in SOUND}
    if "epsilon" in parameters:
        own["epsilon"] = 0.4
    function(first, **own)
    for parameter in parameters[1:]:
        if parameter in FLAGS:
            continue
        for wrong in WRONG[parameter]:
            said = UNKNOWN if str(wrong) == "['nobody']" else parameter
            with pytest.raises(fastdx.FastdxError, match=said):
                function(first, **{**own, parameter: wrong})
    for other in ("words", None, np.eye(3)):
        with pytest.raises(
            (fastdx.InputTypeError, AttributeError), match=f"{parameters[0]}|has no"
        ):
            function(other, **own)
