"""The choice of a policy: a better one that is planted wins, and none that leaks."""

import numpy as np
import pytest
from experiments import policies, recommendation
from experiments.measures import tem
from experiments.policies import BEFORE, TASKS, Cell, Policy, Size
from experiments.recommendation import Found, faults, recommended, winner
from experiments.tables import Run

from helpers.attacked import WORDS, E, Planted

SIZE = Size(len(WORDS), 60, 200, 100, 100)
NONE, ALL = Policy("uniform", 0, 0.01), Policy("uniform", 0, 400.0)
TEXTS = 200


def found(use: float, content: float, rare: float, authors: float, worst: float = 0.02) -> Found:
    """Ten draws of a policy with such shares, in every task and of every text."""
    rng = np.random.default_rng(5)

    def draw() -> dict[tuple[object, ...], object]:
        made: dict[tuple[object, ...], object] = {}
        for task in TASKS:
            named = {"content": content, "rare": rare, "names": 0.0}
            made["attack", task] = {
                band: [[9] * TEXTS, *([[0] * TEXTS] * 2), rng.binomial(9, share, TEXTS).tolist()]
                for band, share in named.items()
            } | {"function": [[9] * TEXTS, [1] * TEXTS]}
            made["use", task] = (use + rng.normal(scale=0.01, size=2)).tolist()
        made["authors",] = rng.binomial(1, authors, (2, TEXTS)).tolist()
        return made

    return Found({task: [0.9, 0.5] for task in TASKS}, {"worst": worst},
                 [draw() for _ in range(10)])  # fmt: skip


BEFORES = found(0.6, 0.1, 0.05, 0.1)
SPOILED = {
    "content": found(0.8, 0.15, 0.05, 0.1),
    "rare": found(0.8, 0.1, 0.1, 0.1),
    "authors": found(0.8, 0.1, 0.05, 0.2),
    "worst word": found(0.8, 0.1, 0.05, 0.1, 0.3),
}


def rows(**made: Found) -> recommendation.Rows:
    shown = {"before": BEFORES, **made}
    bases = dict(zip(shown, (BEFORE, *(Policy(name, 0, 3.0) for name in made)), strict=True))
    return {name: some.row(bases[name], BEFORES) for name, some in shown.items()}


def test_more_use_wins_where_no_more_is_given_away() -> None:
    better, worse = found(0.7, 0.08, 0.04, 0.08), found(0.55, 0.02, 0.01, 0.03)
    some = rows(better=better, worse=worse)
    assert not any(faults(row) for row in some.values())
    assert winner(some) == "better" and winner(rows(worse=worse)) == "before"
    # Half of 0.4 above chance is kept.
    low, high = some["better"]["score"][1:]
    assert low < 0.5 < high < 0.55
    assert some["better"]["named"]["content"] == pytest.approx(0.08, abs=0.01)


def test_of_equal_use_the_one_that_gives_less_away_wins() -> None:
    more, less = found(0.7, 0.09, 0.04, 0.08), found(0.699, 0.03, 0.01, 0.03)
    assert winner(rows(more=more, less=less)) == "less"
    # Two draws say nothing of what is equal.
    few = less._replace(draws=less.draws[:2])
    assert winner(rows(more=more, less=few)) == "more"


@pytest.mark.parametrize("fault", SPOILED)
def test_whoever_leaks_more_by_one_measure_loses(fault: str) -> None:
    some = rows(better=found(0.7, 0.08, 0.04, 0.08), spoiled=SPOILED[fault])
    assert some["spoiled"]["score"][0] > some["better"]["score"][0]
    said = faults(some["spoiled"])
    assert said and all(name.startswith(fault) for name in said)
    assert winner(some) == "better"


def test_a_base_has_to_win_on_two_spaces() -> None:
    one, other = rows(a=found(0.7, 0.1, 0.05, 0.1)), rows(b=found(0.7, 0.1, 0.05, 0.1))
    assert recommended({"x": one, "y": other}) is None
    best = recommended({"x": other, "y": one, "z": one})
    assert best is not None and best.base == "a"


@pytest.mark.filterwarnings("ignore::fastdx.exceptions.UnchangedWarning")
def test_cells_convict_a_leak_and_acquit_noise() -> None:
    run = Run(Planted(), "recommendation", quick=True)
    cells = [Cell(run, "minilm", policy, SIZE) for policy in (BEFORE, ALL, NONE)]
    cells[0].mechanism = NOISE = tem(E, 0.01)
    some = recommendation.rows_of(cells, 2)
    said = faults(some[str(ALL)])
    assert {name.split(",")[0] for name in said} == {"content", "rare", "authors", "worst word"}
    assert not [name for name in faults(some[str(NONE)]) if name == "worst word"]
    assert some[str(ALL)]["score"][0] > 0.9 > some[str(NONE)]["score"][0]
    assert some[str(ALL)]["named"]["rare"] > 0.99 and some[str(ALL)]["law"]["worst"] > 0.99
    # By brute force, and by the product's own sum.
    law, base = some[str(ALL)]["law"], cells[1].base
    assert law["bits"] == pytest.approx(float(cells[1].channel.bits(base)), abs=1e-6)
    parts = zip(policies.BANDS, (cells[1].bands == b for b in range(3)), strict=True)
    assert sum(law["bands"][name]["bits"] * base[part].sum() for name, part in parts) == (
        pytest.approx(law["bits"]))  # fmt: skip
    assert NOISE.epsilon == some[str(BEFORE)]["law"]["epsilon"]


def test_the_base_is_in_the_law() -> None:
    weights = np.arange(1.0, len(E) + 1)
    for k in (None, 10):
        plain = tem(E, 2.0, k).probabilities(WORDS[7])
        based = tem(E, 2.0, k, language=weights).probabilities(WORDS[7])
        wanted = plain * weights
        assert based == pytest.approx(wanted / wanted.sum(), abs=1e-6)
