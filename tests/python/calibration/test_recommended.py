"""Everything that names the recommended policy means the same, and its kept numbers are true."""

import json

import numpy as np
import pytest
from experiments.recommendation import KEPT, recommended

from fastdx import Tem, from_spec
from fastdx.calibration import choose_epsilon
from fastdx.cli import policies
from helpers import ROOT
from helpers.policies import made


def test_it_is_the_policy_that_its_experiment_chose() -> None:
    best = recommended(json.loads(KEPT.read_text("utf-8"))["spaces"])
    assert best is not None and best.cover == 0
    chosen = Tem(epsilon=best.epsilon, language=best.base, exclude="offensive")
    assert chosen == Tem.recommended()


def test_the_command_and_the_example_of_policies_take_it() -> None:
    assert made("privatize") == Tem.recommended()
    written = policies.one(str(ROOT / "examples" / "policies.toml"))
    assert from_spec({**written.spec, "exclude": "offensive"}) == Tem.recommended()


@pytest.mark.filterwarnings("ignore::fastdx.exceptions.UnchangedWarning")
def test_its_epsilon_is_chosen_where_nothing_is_promised() -> None:
    tem = Tem.recommended()
    choice = choose_epsilon(tem.with_epsilon(1.0), words=tem.space.words[:1000], tolerance=0.01)
    assert choice.epsilon == pytest.approx(tem.epsilon, rel=0.05)


def test_its_kept_share_of_unchanged_words_is_that_of_its_laws() -> None:
    tem = Tem.recommended()
    known = tem.unchanged
    assert known.draws == 0
    common = tem.space.words[: known.words]
    same = np.array([tem.probabilities(word)[i] for i, word in enumerate(common)])
    assert abs(known.mean - same.mean()) < 1e-12
    assert abs(known.worst - same.max()) < 1e-12


def test_other_policies_are_measured() -> None:
    epsilon = Tem.recommended().nominal
    others = [Tem.recommended(epsilon=float(np.nextafter(epsilon, 3))),
              Tem.recommended(language="uniform"), Tem.recommended(exclude=["tea"]),
              Tem.recommended(beta=0.01), Tem.recommended(cover=3)]  # fmt: skip
    assert all(other.unchanged.draws > 0 for other in others)
