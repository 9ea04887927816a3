"""All mechanisms beside each other: none escapes, and what is shown is what can be computed."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, FiniteLaw, Tem, WordGraph
from fastdx.channel import NgramPrior
from fastdx.cli import main
from fastdx.lab import laws
from fastdx.lab.commands.compare import STANDARD_NAMES
from fastdx.lab.comparison import HEADER, PUBLISHED, VARIANTS, compare, families, family_names
from fastdx.lab.laws import Law
from fastdx.mechanisms import MECHANISMS
from helpers.command import Command
from helpers.laws import bits_of, distances_of, ratios_of, zipf
from helpers.spaces import numbered

RNG = np.random.default_rng(7)
WORDS = [f"w{i}" for i in range(24)]
PLANE = Embedding(WORDS, RNG.normal(size=(24, 2)))
LINE = Embedding(WORDS, RNG.normal(size=(24, 1)))
BALL = Embedding(WORDS, RNG.uniform(-0.6, 0.6, size=(24, 2)), metric="poincare")
PRIOR = zipf(24)


def named_by_hand(matrix: np.ndarray) -> float:
    return float((PRIOR[:, None] * matrix).max(axis=0).sum())


def test_every_name_is_in_the_command(tmp_path: Path, command: Command) -> None:
    shown: set[str] = set()
    for space, epsilon in ((LINE, "0.4"), (BALL, "3")):
        space.save(tmp_path / "e.fdx")
        page = tmp_path / "page.md"
        args = ["compare", "--embedding", str(tmp_path / "e.fdx"), "--epsilon", epsilon]
        told = command(*args, "--mechanisms", "all", "-o", page).err
        text = page.read_text("utf-8")
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
        assert all(len(row) == len(HEADER) for row in rows)
        names = {row[0].removeprefix("| ") for row in rows}
        # Mechanisms that are not in the table stand below it, with the reason, and in the messages.
        lost = {name for name in family_names() if f"Left out: {name}, " in text}
        assert names.isdisjoint(lost) and names | lost == set(family_names())
        assert all(f"left out: {name}: " in told for name in lost)
        assert all(f"- {name}: " in text for name in names)
        shown |= names
    assert shown == set(family_names()) >= {*MECHANISMS, *PUBLISHED}
    listed = command("compare", "--mechanisms", "list").out.splitlines()
    assert [line.split()[0] for line in listed] == list(family_names())
    assert "words of a set: 20" in next(line for line in listed if line.startswith("custext "))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_numbers_are_those_of_the_law(name: str) -> None:
    space = LINE if name in ("vickrey-line", "truncated-laplace") else PLANE
    epsilon = 0.4 if name == "truncated-laplace" else 1.5
    made = families(space, [name])
    line, law = next(compare(made, epsilon=epsilon, judge=space)), made[name].make(epsilon)
    assert isinstance(law, Law)
    matrix = law.matrix()
    assert line.values["R"] == pytest.approx(named_by_hand(matrix), rel=1e-9)
    ratios, d = ratios_of(matrix), distances_of(space)
    assert line.values["any_two"] == pytest.approx(ratios.max(), rel=1e-6)
    off = ~np.eye(24, dtype=bool)
    assert line.values["per_distance"] == pytest.approx((ratios[off] / d[off]).max(), rel=1e-6)
    assert line.values["epsilon"] == law.proved.epsilon and line.values["unit"] == law.proved.unit
    cells = line.cells()
    assert ("∞" in cells) == (not (matrix > 0).all(axis=0)[(matrix > 0).any(axis=0)].all())
    assert (cells[2] == "none") == math.isinf(law.proved.epsilon)


@pytest.mark.parametrize(
    ("limit", "value", "column", "by_hand"),
    [("named", 0.4, "R", named_by_hand), ("bits", 1.0, "bits", lambda m: bits_of(PRIOR, m))],
)
def test_equal_limits_are_equal(limit: str, value: float, column: str, by_hand: Any) -> None:
    made = families(PLANE, ["tem", "tem-cover:3", "santext", "randomised-response", "response"])
    at: dict[str, Any] = {limit: value}
    lines = {line.name: line for line in compare(made, **at)}
    for name, line in lines.items():
        assert line.values[column] <= value
        more = made[name].make(line.parameter * 1.01)
        assert next(compare({"": more})).values[column] > value
        shown = line.cells()[HEADER.index("bits a word")]
        assert limit == "named" or 0.96 < float(shown) <= 1.0
    # Sets of three words tell which set it is, and name a third of them, at any ε.
    at = {limit: value / 4}
    (line,) = compare(families(PLANE, ["custext:3"]), **at)
    assert line.made is None and line.cells()[1] == "more at every ε"
    found = lines["randomised-response"].values
    law = laws.randomized_response(PLANE, found["epsilon"]).matrix()
    # ε is within 0.5%; bits grow by a few times as much.
    assert found[column] == pytest.approx(by_hand(law)) == pytest.approx(value, rel=0.03)


def test_noise_has_no_bits() -> None:
    many = Embedding(PLANE.words, np.random.default_rng(1).normal(size=(len(PLANE), 3)))
    (line,) = compare(families(many, ["laplace"]), bits=1.0)
    assert line.made is None and "law" in line.why


def test_numbers_behind_a_name_reach_the_law() -> None:
    made = families(PLANE, ["custext:4", "custext:24", "tem-remap:2", "neighbours:0.5"])
    groups = made["custext:4"].make(1.0).proved.groups  # type: ignore[union-attr]
    assert np.bincount(groups).tolist() == [4] * 6
    assert made["custext:24"].make(1.0).proved.unit.endswith("each of 1 groups")  # type: ignore[union-attr]
    expected = laws.with_neighbors(laws.santext(PLANE, 2.0), 1.0).matrix()
    assert np.allclose(made["neighbours:0.5"].make(2.0).matrix(), expected)  # type: ignore[union-attr]
    remapped = made["tem-remap:2"].make(1.0)
    assert isinstance(remapped, Tem) and remapped.remap is not None
    assert "sets" in made["custext:4"].about and "4" in made["custext:4"].about


def test_word_graphs_and_single_words() -> None:
    graph = WordGraph([(f"w{i}", f"w{i // 2}") for i in range(1, 15)])
    without_vectors = {"tem", *VARIANTS, "response", *PUBLISHED} - {
        "vickrey-line", "truncated-laplace"}  # fmt: skip
    made = families(graph)
    assert set(made) == without_vectors
    for line in compare(made, epsilon=1.0):
        assert line.made is not None and line.cells()[-1] == "–"
    one = Embedding(["a"], [[1.0, 2.0]])
    for line in compare(families(one), epsilon=1.0, judge=one):
        assert line.values["R"] == 1.0
        # Noise without a law that can be computed has no number.
        assert line.values["any_two"] == 0.0 or np.isnan(line.values["any_two"])


def test_what_takes_minutes_is_left_out() -> None:
    many = numbered(RNG.normal(size=(61, 2)))
    lost: dict[str, str] = {}
    assert "optimal" not in families(many, left_out=lost.__setitem__)
    assert "minutes for more than 60 words" in lost["optimal"]


def test_mechanisms_and_laws_are_compared_as_they_are() -> None:
    law = laws.rank_based(PLANE, 2.0)
    staircase = fastdx.NeighborResponse(PLANE, 2.0, cover=4)
    given, drawn, stairs = (
        line.values
        for line in compare(
            {"law": law, "drawn": FiniteLaw(law=law), "staircase": staircase}, judge=PLANE
        )
    )
    assert given["R"] == drawn["R"] == pytest.approx(named_by_hand(law.matrix()))
    units = [v["unit"] for v in (given, drawn, stairs)]
    assert units == ["any two words", "euclidean distance", "any two words"]
    assert [v["any_two"] for v in (given, drawn, stairs)] == pytest.approx([2.0, 2.0, 2.0])
    assert drawn["epsilon"] == pytest.approx(drawn["per_distance"])
    # Noise has no law that can be computed in many dimensions.
    many = Embedding(WORDS, RNG.normal(size=(24, 5)))
    (noise,) = compare({"noise": fastdx.MultivariateLaplace(many, 2.0)})
    assert np.isnan(noise.values["any_two"]) and noise.values["epsilon"] == 2.0
    assert np.isnan(noise.values["bits"]) and noise.cells()[4].endswith("(draws)")


def test_what_cannot_be_compared(tmp_path: Path, command: Command) -> None:
    for names, said in (
        (["madlibs"], "madlibs"),
        (["santext:3"], "santext takes no number"),
        (["custext:x"], "words of a set, got 'x'"),
        (["tem-cover:0"], "tem-cover:0: the number .* must be a whole number"),
        (["vickrey-line"], "vickrey-line: space must have one dimension"),
        ([], "names"),
        ("tem", "names"),
    ):
        with pytest.raises(fastdx.ParameterError, match=said):
            families(PLANE, names)
    with pytest.raises(fastdx.ParameterError, match="truncated-laplace's epsilon"):
        families(LINE, ["truncated-laplace"])["truncated-laplace"].make(0.5)
    made = families(PLANE, ["tem"])
    for wrong in ({}, {"epsilon": 1.0, "named": 0.5}, {"named": 1.0}, {"named": 0.5, "bits": 1.0}):
        with pytest.raises(fastdx.ParameterError, match="named"):
            next(compare(made, **wrong))
    with pytest.raises(fastdx.ParameterError, match="bits must be finite and positive"):
        next(compare(made, bits=0.0))
    with pytest.raises(fastdx.ParameterError, match="model must be given"):
        next(compare(made, epsilon=1.0, texts=["w1"]))
    PLANE.save(tmp_path / "e.fdx")
    small = ["compare", "--embedding", str(tmp_path / "e.fdx"), "-q"]
    for args, said in (
        ([*small, "--bits", "1", "--named", "5%"], "--bits does not go with --named"),
        ([*small, "--mechanisms", "vickrey-line"], "one dimension"),
        # 32 bytes for each of V² numbers are more than 8 GiB.
        (["compare", "--mechanisms", "tem", "--words", "0", "-q"], "give --words 16384 or less"),
    ):
        assert said in command(*args, code=1).err
    # An ε outside the domain of one is no reason to lose the others.
    LINE.save(tmp_path / "e.fdx")
    page = command(*small, "--mechanisms", "tem,truncated-laplace", "--epsilon", "3").out
    assert "| truncated-laplace | – |" in page and "below 0.5, got 3.0" in page
    assert "| tem | 3 |" in page
    for wrong_share in ("0", "100%", "x"):
        with pytest.raises(SystemExit):
            main([*small, "--mechanisms", "tem", "--named", wrong_share])


def test_texts_are_attacked_beside(tmp_path: Path, command: Command) -> None:
    PLANE.save(tmp_path / "e.fdx")
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(PLANE.words, 8)) for _ in range(60)]
    model = NgramPrior.train(PLANE, texts[::2])
    judge = Embedding(WORDS, PLANE.vectors + 0.1 * RNG.normal(size=(24, 2)))
    at = HEADER.index("named in sentences")
    for line in compare({"tem": Tem(PLANE, 2.0), "noise": fastdx.MultivariateLaplace(PLANE, 2.0)},
                        texts=texts[1::2], model=model, judge=judge):  # fmt: skip
        assert line.cells()[at].startswith(f"{line.values['sentence']:.1%} (")
        assert line.values["sentence_low"] <= line.values["sentence"]
        assert {"alone", "unchanged"} <= {*line.values}
        assert line.values["similarity"] > line.values["chance"]
    (tmp_path / "t.txt").write_text("\n".join(texts), "utf-8")
    base = ["compare", "--embedding", str(tmp_path / "e.fdx"), "--exclude", "none", "-q",
            "--texts", str(tmp_path / "t.txt")]  # fmt: skip
    page = command(*base, "--mechanisms", "tem,laplace", "--bits", "1.5").out
    (row,) = [r.split(" | ") for r in page.splitlines() if r.startswith("| tem |")]
    assert row[3] in ("1.49", "1.50")
    assert re.fullmatch(r"[\d.]+% \([\d.]+% to [\d.]+%\)", row[at])
    assert "no more than 1.5 bits" in page


def test_what_is_compared_by_default(tmp_path: Path, command: Command) -> None:
    PLANE.save(tmp_path / "e.fdx")
    (tmp_path / "s.txt").write_text("w1 w2\n\nw3 w4\n", "utf-8")
    page = command("compare", "--embedding", tmp_path / "e.fdx", "--exclude", "none", "-q",
                   "--sentences", tmp_path / "s.txt").out  # fmt: skip
    assert page.count("*w3 w4*") == 1 and page.count("- tem-balanced: ") == 2
    assert all(f"| {name} | " in page for name in STANDARD_NAMES)


def test_words_that_are_never_released_are_left_out(tmp_path: Path, command: Command) -> None:
    PLANE.save(tmp_path / "e.fdx")
    (tmp_path / "never.txt").write_text("w3\nw5\n", "utf-8")
    out = command(
        "compare", "--embedding", tmp_path / "e.fdx", "--mechanisms", "tem,custext", "--exclude",
        tmp_path / "never.txt", "--words", "20", "--named", "50%",
    ).out  # fmt: skip
    assert "2 mechanisms compared on 20 words" in out and "flatters" in out
    assert "The first 20 of the embedding's 24 words, without the 2 that are never" in out
