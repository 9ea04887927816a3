"""Covers of kinds, and files of pairs with a third column, as a Python user meets them."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import fastdx
from fastdx import Cover, Embedding, Tem, WordGraph, from_spec, poincare
from fastdx.channel.hierarchy import nouns, pairs
from helpers.command import Command

COUNTED = "london\tcity\t120\nparis\tcity\t80\ncity\tplace\t300\nparis\tperson\t2\nida\tperson\t9\n"
PAIRS = [("ohio", "state"), ("utah", "state"), ("state", "place"), ("techno", "music")]


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    (tmp_path / "is-a.tsv").write_text(COUNTED, "utf-8")
    return tmp_path / "is-a.tsv"


def kinds_of(word: str) -> set[str]:
    """The built-in file, read once more."""
    return {word}.union(*(kinds_of(kind) for kind in nouns()[word][1]))


def test_the_built_in_nouns_are_kinds_of_each_other() -> None:
    cover = Cover.hypernyms()
    words = cover.space.words
    assert isinstance(cover.space, WordGraph) and "state" in cover.outputs("ohio")
    assert set(words) == {word for pair in pairs() for word in pair}
    released = set(words) - set(cover.excluded)
    assert len(cover) == len(released) and all(len(cover.sets(kind)) >= 10 for kind in released)
    for word in words[::100]:
        assert set(cover.outputs(word)) == kinds_of(word) & released
    assert cover == pickle.loads(pickle.dumps(cover)) != Cover.hypernyms(least=11)


def test_the_words_may_be_those_of_an_embedding() -> None:
    e = Embedding(["ohio", "state", "green", "utah"], [[0.0], [1.0], [2.0], [9.0]])
    cover = Cover.hypernyms(PAIRS, least=3, order=e)
    assert cover.sets("state") == ["ohio", "state", "utah"] and len(cover) == 1 and cover.k == 0
    assert cover.outputs("green") == []
    with pytest.raises(fastdx.ParameterError, match="least must be from 1 to 1"):
        Cover.hypernyms(PAIRS, least=3, order=e, exclude=["state"])


def test_deep_hierarchies_and_words_that_are_not_in_them() -> None:
    chain = [(f"w{i - 1}", f"w{i}") for i in range(1, 4000)]
    # Words that the space lacks count for nothing, but kinds are found through them.
    some = Embedding(["w0", "w3999", "w7"], [[0.0], [1.0], [2.0]])
    cover = Cover.hypernyms(chain, least=2, order=some)
    assert cover.sets("w3999") == ["w0", "w3999", "w7"] and cover.sets("w7") == ["w0", "w7"]
    assert len(cover) == 2 and len(Cover.hypernyms(chain, least=3998)) == 3
    # A word without an edge stands for itself, but no output of two words stands for it.
    wider = Cover.hypernyms(PAIRS, least=1, order=some)
    assert (len(wider), wider.k) == (3, 1)


# Short ones: tests/it/hypernyms.rs.
def test_long_cycles_are_cut_short() -> None:
    ring = [(f"w{i}", f"w{(i + 1) % 30}") for i in range(30)]
    with pytest.raises(fastdx.ParameterError, match='"w9" → "w0", 30 words'):
        Cover.hypernyms(ring, least=1)
    with pytest.raises(fastdx.InputTypeError, match="no direction"):
        Cover.hypernyms(WordGraph(PAIRS))  # type: ignore[arg-type]


def test_a_count_is_never_a_distance(counted: Path) -> None:
    readers: tuple[Callable[..., object], ...] = (
        WordGraph, Cover.hypernyms, lambda path: poincare.train(path, 2))  # fmt: skip
    for read in readers:
        with pytest.raises(fastdx.FormatError, match=r"is-a\.tsv, line 1: .*lengths.*min_count"):
            read(counted)
    assert WordGraph(counted, lengths=True).distance("london", "city") == 120
    graph = WordGraph(counted, min_count=80)
    assert graph.distance("london", "paris") == 2 and "ida" not in graph
    assert Cover.hypernyms(counted, least=2, min_count=3).outputs("paris") == ["city", "place"]
    both = Cover.hypernyms(counted, least=2, min_count=0)
    assert both.outputs("paris") == ["city", "place", "person"]
    assert poincare.train(counted, 2, epochs=1, min_count=81).words == ("london", "city", "place")
    for wrong in ({"lengths": True, "min_count": 1}, {"min_count": -1}):
        with pytest.raises(fastdx.ParameterError, match="min_count"):
            WordGraph(counted, **wrong)  # type: ignore[arg-type]
    with pytest.raises(fastdx.ParameterError, match="edges must be a file"):
        WordGraph(PAIRS, lengths=True)


@pytest.mark.parametrize(
    ("options", "line", "message"),
    [
        ({"lengths": True}, "a\tb\t-1", "length is not a finite number, at least 0"),
        ({"lengths": True}, "a\tb\tnan", "length is not a finite number, at least 0"),
        ({"lengths": True}, "a\tb\tinf", "length is not a finite number, at least 0"),
        ({"lengths": True}, "a\tb", "two words and a length"),
        ({"min_count": 2}, "a\tb\t1.5", "count is not a whole number, at least 0"),
        ({"min_count": 2}, "a\tb\t-3", "count is not a whole number, at least 0"),
        ({"min_count": 2}, "a\tb", "two words and a count"),
        ({}, "a\tb\t1", "third column"),
        ({}, "a", "an edge has two words"),
        ({}, "a\ta", "linked to itself"),
    ],
)
def test_bad_lines_are_named(
    tmp_path: Path, options: dict[str, int], line: str, message: str
) -> None:
    third = "\t7" * bool(options)
    (tmp_path / "edges").write_text(f"x\ty{third}\n{line}\n", "utf-8")
    with pytest.raises(fastdx.FormatError, match=f"line 2: .*{message}"):
        WordGraph(tmp_path / "edges", **options)  # type: ignore[arg-type]


def test_specs_and_commands_say_what_the_column_is(counted: Path, command: Command) -> None:
    index = {"file": str(counted), "format": "edges"}
    for third, edges in (({"lengths": True}, 5), ({"min_count": 9}, 4)):
        made = from_spec({"epsilon": 2.0, "index": {**index, **third}})
        assert isinstance(made.space, WordGraph) and made.space.edges == edges
        for key, value in third.items():
            assert made.spec["index"][key] == value
        assert from_spec(made.spec).space.words == made.space.words
    for wrong in ({**index, "lengths": True, "min_count": 1}, {"file": "x", "min_count": 1}):
        with pytest.raises(fastdx.ParameterError, match="lengths"):
            from_spec({"epsilon": 2.0, "index": wrong})
    (text := counted.with_name("in.txt")).write_text("london\n", "utf-8")
    graph = ("privatize", "--epsilon", "60", "-q", "--graph", counted)
    assert "min_count" in command(*graph, text, code=1).err


def test_a_saved_file_is_a_policy_of_kinds(tmp_path: Path, command: Command) -> None:
    cover = Cover.hypernyms(PAIRS, least=2)
    Tem(cover.space, 4.0, cover=cover).save(tmp_path / "kinds.fdx")
    policy = tmp_path / "policy.toml"
    policy.write_text('index = "kinds.fdx"\nepsilon = 4.0\noov = "mask"\n', "utf-8")
    (tmp_path / "in.txt").write_text("techno in utah\n" * 200, "utf-8")
    out = command("privatize", "--policy", policy, "-q", tmp_path / "in.txt").out
    assert {word for word in out.split() if "[" not in word} == {"state", "place", "music"}
