"""The program does as docs/faq.md says."""

import re

import pytest

from fastdx import Tem, UnchangedWarning
from helpers import ROOT

FAQ = (ROOT / "docs" / "faq.md").read_text("utf-8")


def test_names() -> None:
    tem = Tem.recommended()
    anna = tem.embedding.ids(["anna"])[0]
    assert "about 4 of 100 draws" in FAQ
    assert 0.035 < tem.probabilities("anna")[anna] < 0.045
    assert not {"nguyen", "kaffee"} & set(tem.embedding.words)


def test_two_releases_cost_twice_and_a_seed_has_no_guarantee() -> None:
    tem = Tem.recommended()
    text = "The coffee was cold."
    assert tem.guarantee.price(f"{text} {text}") == 2 * tem.guarantee.price(text)
    assert tem.guarantee.void is None and Tem.recommended(seed=1).guarantee.void


@pytest.mark.filterwarnings("ignore", category=UnchangedWarning)
@pytest.mark.parametrize(("epsilon", "back"), [(2.6, 2), (4, 10), (6, 41)])
def test_the_table_of_outputs(epsilon: float, back: int) -> None:
    tem = Tem(epsilon=epsilon, language="rank", exclude="offensive")
    assert re.search(rf"^\| {epsilon} \| .+ \| {back}% \|$", FAQ, re.M)
    assert round(100 * tem.unchanged.mean) == back
