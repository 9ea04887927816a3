"""Release records: computed from what they are about, rounded up, plain about what is void."""

import json
import math
import re
from decimal import Decimal, localcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

import fastdx
from fastdx import (
    Embedding,
    FiniteLaw,
    Guarantee,
    HyperbolicLaplace,
    Mechanism,
    NeighborResponse,
    Tem,
    WordGraph,
    record,
)
from fastdx._shared.laws import deniable
from fastdx.budget import Ledger
from helpers import ROOT
from helpers.errors import refused
from helpers.laws import law_of
from helpers.registry import KINDS, made, space

ENGLISH = Embedding.default()
SMALL = Embedding(ENGLISH.words[:400], ENGLISH.vectors[:400])
LINE = Embedding(["tea", "coffee", "law"], [[0.0], [1.0], [4.0]])
ROWS = np.random.default_rng(3).uniform(-1, 1, (30, 2)).tolist()
HEADINGS = [
    "What is protected, and against whom", "The promise in numbers",
    "Singling out, linkability, inference", "What is not anonymous", "Budget used",
    "Words of the GDPR that fit, and what is not claimed", "To be filled in and signed",
]  # fmt: skip


def rows(page: str) -> list[list[str]]:
    """The cells of the table of pairs."""
    table = page.split("## The promise in numbers")[1].split("##", maxsplit=1)[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines]


def check(page: str, guarantee: Guarantee) -> None:
    """A page is whole, and its bounds are the guarantee's, rounded up."""
    assert re.findall(r"^## (.*)$", page, re.M) == HEADINGS
    assert "not anonymous information in the sense of recital 26" in page
    assert len({line.replace(r"\|", "").count("|") for line in page.split("\n\n")[1].splitlines()
                if line.startswith("|")}) <= 1  # fmt: skip
    told = re.search(r"in the channel card \| `([^`|]*)` \|\n", page)
    assert told and json.loads(told[1]) == json.loads(guarantee._mechanism._card())["spec"]
    found = record.pairs(guarantee)
    assert len(rows(page)) == max(len(found), 1)
    for (a, b, _), (words, factor, sure) in zip(found, rows(page), strict=False):
        assert words.replace("\\", "").startswith(f"{a}, {b}")
        least = guarantee.bound([a], [b])
        if math.isinf(least):
            assert (factor, sure) == ("no bound", "practically certain")
            continue
        value = Decimal(factor.replace(" · 10^", "E"))
        with localcontext() as context:
            context.prec = 50
            exact = Decimal(least).exp()
        assert exact <= value <= exact * Decimal("1.011") * Decimal(guarantee.slack).exp()
        if sure != "practically certain":
            assert 100 / (1 + math.exp(-least)) <= float(sure.rstrip("%"))


@KINDS
def test_every_mechanism_has_a_record(kind: type[Mechanism]) -> None:
    m = made(kind, space(kind, ROWS), 2.0)
    page = m.guarantee.describe("reviewer")
    check(page, m.guarantee)
    assert page.startswith(f"# Release record: texts changed by {kind.__name__}\n")
    assert f"| distance | {m.guarantee.metric}" in page and "DO NOT SIGN" not in page


def test_other_kinds_of_spaces_and_laws() -> None:
    certified = Tem(SMALL, 2.0, certified=True)
    assert "| certificate | ε = " in certified.guarantee.describe("reviewer")
    graph = Tem(WordGraph(edges=[("a", "b"), ("b", "c"), ("c", "d")]), 1.0)
    law = FiniteLaw(LINE, [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    few = [Tem(Embedding(["a"], [[1.0]]), 1.0), Tem(Embedding(["a", "b"], [[1.0], [2.0]]), 1.0)]
    for m in (
        certified,
        graph,
        law,
        *few,
        *(Tem(SMALL, 2.0, consistent=c) for c in (True, "call")),
    ):
        check(m.guarantee.describe("reviewer"), m.guarantee)
    assert [row[1] for row in rows(law.guarantee.describe("reviewer"))] == ["no bound"] * 3
    response = NeighborResponse(LINE, 2.0, cover=2).guarantee.describe("reviewer")
    assert rows(response)[0][:2] == ["tea, coffee", "7.39"]
    assert "fewer than two words" in few[0].guarantee.describe("reviewer")
    assert len(record.pairs(few[1].guarantee)) == 1
    assert "equal, also in different texts" in m.guarantee.describe("reviewer")


def test_the_default_vocabularies_give_telling_pairs() -> None:
    # All noise has the bounds of Tem.
    for kind in (Tem, NeighborResponse, HyperbolicLaplace):
        found = record.pairs(made(kind, Embedding.default(kind.default_space), 3.0).guarantee)
        assert len({pair[:2] for pair in found}) == 3
        assert [bound for *_, bound in found] == sorted(bound for *_, bound in found)
    found = [(a, b, round(bound, 6)) for a, b, bound in record.pairs(Tem(LINE, 2.0).guarantee)]
    assert found == [("tea", "coffee", 2.0), ("coffee", "law", 6.0), ("tea", "law", 8.0)]


def test_pairs_are_of_words_that_may_be_shown_and_are_protected() -> None:
    offensive = fastdx.Cover.identity(ENGLISH, exclude="offensive").excluded
    some = Embedding(
        [*offensive[:20], *ENGLISH.words[200:230]], np.random.default_rng(2).normal(size=(50, 3))
    )
    tem = Tem(some, 1.0, exclude=[ENGLISH.words[201]], skip=[ENGLISH.words[203]])
    shown = {word for pair in record.pairs(tem.guarantee) for word in pair[:2]}
    assert shown and not shown & {*offensive, ENGLISH.words[201], ENGLISH.words[203]}


def test_words_do_not_break_the_page() -> None:
    e = Embedding(["a|b", "*x*", "`q#`", "x`|y"], [[0.0], [1.0], [3.0], [4.0]])
    odd = Tem(e, 1.0, exclude=["x`|y"])
    page = odd.guarantee.describe("reviewer")
    check(page, odd.guarantee)
    assert "`q#`" not in page and r"a\|b, \*x\* (nearest)" in page
    assert len(rows(page)) == 3


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 30.0])
def test_what_comes_back_is_said(epsilon: float) -> None:
    tem = Tem(SMALL, epsilon)
    page, found = tem.guarantee.describe("reviewer"), tem.unchanged
    mean, worst = map(float, re.findall(r"([\d.]+)%", page.split("Measured, not proved")[1])[:2])
    assert 0 <= mean - 100 * found.mean <= 0.1001 and 0 <= worst - 100 * found.worst <= 0.1001
    assert "computed, for 400 words" in page
    warned = page.splitlines()[2].startswith("> **WARNING: ")
    assert warned == (found.warning is not None) == (found.mean > 0.2)


def deniability_is_true(page: str, law: NDArray[np.float64]) -> bool:
    """Whether the counts on a page are those of a law, written out."""
    law = law[:, law.any(axis=0)]
    counts = np.sort((record.DENIED_FACTOR * law >= law.max(axis=0)).sum(axis=0))
    found = re.search(r"at least ([\d,]+) words are .* outputs at least ([\d,]+)\.", page)
    assert found is not None
    least, middle = (int(number.replace(",", "")) for number in found.groups())
    return least == counts.min() and (counts >= middle).mean() >= 0.5 > (counts > middle).mean()


def test_deniability_is_counted_in_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    for tem in (Tem(SMALL, 0.5), Tem(SMALL, 3.0, exclude=SMALL.words[:50], cover=3)):
        assert "Plausible deniability" not in tem.guarantee.describe("reviewer")
        page = tem.guarantee.with_bits().describe("reviewer")
        assert deniability_is_true(page, law_of(tem))
    with monkeypatch.context() as liar:
        liar.setattr(record, "deniable", lambda *given: deniable(*given) + 1)
        assert not deniability_is_true(tem.guarantee.with_bits().describe("reviewer"), law_of(tem))
    history = Tem(ENGLISH, 3.0, language="english").guarantee.with_bits()
    assert "Plausible deniability" not in history.describe("reviewer")


def test_what_is_void_is_not_to_be_signed() -> None:
    page = Tem(SMALL, 2.0, seed=1).guarantee.describe("reviewer")
    assert page.splitlines()[2].startswith("> **DO NOT SIGN. NOTHING IS PROTECTED: ")
    assert "**The promise:**" not in page and "**Protected:**" not in page
    assert [row[1] for row in rows(page)] == ["no bound"] * 3


def test_what_is_released_is_said_at_the_top() -> None:
    warning = "> **SOME WORDS ARE RELEASED AS THEY ARE.**"
    plain = Tem(SMALL, 2.0)
    assert warning not in plain.guarantee.describe("reviewer")
    spans = plain.privatize_spans("the cat", [(4, 7)]).guarantee
    others = (Tem(SMALL, 2.0, oov="keep"), Tem(SMALL, 2.0, skip=["the"]))
    for guarantee in (spans, *(tem.guarantee for tem in others)):
        page = guarantee.describe("reviewer")
        assert page.splitlines()[2].startswith(warning)
        listed = page.split("## What is not anonymous")[1].replace("\\", "")
        assert all(exception.replace("\\", "") in listed for exception in guarantee.exceptions)


def test_the_budget(tmp_path: Path) -> None:
    tem = Tem(SMALL, 2.0)
    ledger = Ledger(tmp_path / "ledger.sqlite", budget=50.0)
    empty = tem.guarantee.describe("reviewer", ledger=ledger)
    assert "| accounts | 0 |" in empty and "first and last" not in empty
    for account, text in (("ann", "in the house"), ("ann", "the"), ("b|b", "it was")):
        ledger.privatize(tem, text, account=account)
    ledger.charge("b|b", 0.1234567)
    ann = tem.guarantee.describe("reviewer", ledger=ledger, account="ann")
    for line in ("| budget of an account | 50 |", "| account | ann |", "| spent | 8 |",
                 "| left | 42 |", "| releases charged | 2 |", "at most e^8: 2990."):  # fmt: skip
        assert line in ann, line
    assert "b" + r"\|" + "b" not in ann
    both = tem.guarantee.describe("reviewer", ledger=ledger)
    for line in ("| accounts | 2 |", "| most that an account spent | 8 |", "charged | 4 |"):
        assert line in both, line
    other = tem.guarantee.describe("reviewer", ledger=ledger, account="b|b")
    # Rounded up, and what is left down.
    assert r"| account | b\|b |" in other and "| spent | 4.12346 |" in other
    assert "| left | 45.8765 |" in other
    assert "**No ledger was given.**" in tem.guarantee.describe("reviewer")


def test_wrong_arguments(tmp_path: Path) -> None:
    tem = Tem(SMALL, 2.0)
    ledger = Ledger(tmp_path / "ledger.sqlite", budget=5.0)
    refused(
        (fastdx.ParameterError, "ledger must be given with account",
         lambda: tem.guarantee.describe("reviewer", account="ann")),
        (fastdx.InputTypeError, "ledger must be a Ledger, not str",
         lambda: tem.guarantee.describe("reviewer", ledger="ledger.sqlite")),
        (fastdx.ParameterError, "audience must be 'reviewer' with ledger",
         lambda: tem.guarantee.describe("user", ledger=ledger)),
        (fastdx.ParameterError, "'engineer', 'user' or 'reviewer'",
         lambda: tem.guarantee.describe("nobody")),
    )  # fmt: skip
    assert tem.guarantee.describe() == str(tem.guarantee)


def test_the_example_is_what_the_code_writes_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    import record as example

    # The attack's result takes long to compute and is not compared; test_attacks.py tests it.
    found = SimpleNamespace(success={1: math.nan})
    monkeypatch.setattr(example.attacks, "reidentification", lambda *_: found)
    changing = ("| software", "| first and last", "- attack that was run")

    def lasting(text: str) -> list[str]:
        return [line for line in text.splitlines() if line and not line.startswith(changing)]

    document = (ROOT / "docs" / "how-to" / "defend-it.md").read_text("utf-8")
    block = document.split("<!-- figures record")[1].split("-->\n", 1)[1]
    shown = block.split("<!-- end of figures")[0].rsplit("*`python", 1)[0]
    page = example.demoted(example.filled())
    assert record.LINE not in page
    assert lasting(shown) == lasting(page)
