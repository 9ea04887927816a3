"""Consistent replacement: one draw for each distinct word."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastdx
from fastdx import BagOfWords, Embedding, Tem
from fastdx._core import Replacements
from fastdx.cli.formats.base import BATCH_CHARACTERS
from helpers.command import run
from helpers.draws import assert_follows

SPACE = Embedding(["a", "b", "c", "d"], [[0.0], [0.5], [1.0], [2.0]])


def test_once_a_text_and_once_a_call() -> None:
    by_text, by_call = (Tem(SPACE, 0.1, consistent=c) for c in (True, "call"))
    # Words of one form, known or unknown, are drawn once in a text; other texts are drawn anew.
    drawn, counts = by_text.privatize_counted(["a B a xyz", "", "b a xyz XYZ"] * 200)
    words = [(*a.split(), *b.split()) for a, b in zip(drawn[::3], drawn[2::3], strict=True)]
    assert all(w[0] == w[2] and w[6] == w[7] for w in words)
    assert any(w[0] != w[5] for w in words) and any(w[3] != w[6] for w in words)
    assert [counts[key] / 200 for key in ("words", "replaced", "unknown")] == [8, 5, 3]
    of_call = [t.split() for t in by_call.privatize(["a a xyz", "b A XYZ"] * 200)]
    assert len({(*odd, *even) for odd, even in zip(of_call[::2], of_call[1::2], strict=True)}) == 1
    (a, a_again, xyz), (_, a_in_even, xyz_in_even) = of_call[:2]
    assert a == a_again == a_in_even and xyz == xyz_in_even
    assert len({by_call.privatize("a") for _ in range(200)}) > 1
    assert len(set(Tem(SPACE, 0.1).privatize(["a"] * 200))) > 1
    tokens = by_text.privatize_tokens(["a", "b", "a"] * 10)
    assert len(set(tokens[::3] + tokens[2::3])) == 1
    ids = by_text.privatize_ids(np.array([[0, 1], [1, 0]]))
    assert ids.shape == (2, 2) and ids[0, 0] == ids[1, 1] and ids[0, 1] == ids[1, 0]
    assert len(set(by_text.sample("a", 1000).tolist())) > 1
    # Across the blocks of a call of more than 16 MB.
    many = by_call.privatize(["a" + " " * 2_000_000] * 9)
    assert len(set(" ".join(many).split())) == 1


def test_the_law_of_a_text() -> None:
    m = Tem(SPACE, 1.0, consistent=True)
    drawn = m.privatize(["a b a"] * 200_000)
    assert all(t.split()[0] == t.split()[2] for t in drawn)
    pairs = [tuple(t.split()[:2]) for t in drawn]
    law = {w: m.probabilities(w) for w in "ab"}
    words = SPACE.words
    keys = [(x, y) for x in words for y in words]
    expected = np.array([law["a"][words.index(x)] * law["b"][words.index(y)] for x, y in keys])
    seen = np.array([pairs.count(k) for k in keys])
    assert_follows(seen, expected)


# How its bound and its price count: test_claims.py.
def test_its_guarantee_is_about_distinct_words() -> None:
    m = Tem(SPACE, 1.0, consistent=True)
    assert "distinct" in m.guarantee.scope and "distinct" in str(m.guarantee)
    assert "distinct words" in str(Tem(SPACE, 1.0, consistent="call").guarantee)
    assert any("are equal" in e for e in m.guarantee.exceptions)
    assert m.with_epsilon(2.0).consistent is True
    with pytest.raises(fastdx.ParameterError, match="consistent"):
        BagOfWords(m)


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from("abcdz"), min_size=1, max_size=4),
    st.one_of(
        st.lists(st.sampled_from("abcdz"), min_size=1, max_size=4),
        st.permutations("abcdz").map(lambda new: dict(zip("abcdz", new, strict=True))),
    ),
)
def test_the_bound_holds_for_every_output(
    x: list[str], other_text: list[str] | dict[str, str]
) -> None:
    """The whole law of both texts, from the laws of words. Half have one pattern."""
    y = other_text if isinstance(other_text, list) else [other_text[w] for w in x]
    m = Tem(SPACE, 1.0, gamma=1.5, consistent=True)
    bound = m.guarantee.bound(x, y)
    laws = {w: m.probabilities(w) for w in "abcd"} | {"z": np.full(4, 0.25)}

    def law(text: list[str]) -> dict[tuple[int, ...], float]:
        distinct = list(dict.fromkeys(text))
        out: dict[tuple[int, ...], float] = {}
        for draws in np.ndindex(*(4,) * len(distinct)):
            p = math.prod(laws[w][d] for w, d in zip(distinct, draws, strict=True))
            key = tuple(draws[distinct.index(w)] for w in text)
            out[key] = out.get(key, 0.0) + p
        return out

    one, other = law(x), law(y) if len(x) == len(y) else {}
    ratios = [
        abs(math.log(one[k] / other[k])) if k in one and k in other else math.inf
        for k in {*one, *other}
    ]
    assert max(ratios) <= bound + 1e-6 and math.isinf(bound) == math.isinf(max(ratios))


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("coffee and tea of the house\n" * (2 * BATCH_CHARACTERS // 28))
    # In more than one piece.
    done = run("privatize", path, "--epsilon", "2", "--consistent")
    assert done.returncode == 0 and len(set(done.stdout.splitlines())) == 1
    lines = '{"t": "tea tea"}\n' * 50
    done = run("privatize", "--epsilon", "0.1", "--consistent", "--format", "jsonl",
               "--column", "t", stdin=lines)  # fmt: skip
    texts = [line[7:-2].split() for line in done.stdout.splitlines()]
    assert all(a == b for a, b in texts) and len({a for a, _ in texts}) > 1


def test_replacements_serve_one_mechanism_and_one_call_at_a_time() -> None:
    kept = Replacements()
    m = Tem(SPACE, 1.0, consistent="call")
    m.privatize_counted(["a b"], replacements=kept)
    with pytest.raises(fastdx.ParameterError, match="of this mechanism"):
        m.with_epsilon(2.0).privatize_counted(["a b"], replacements=kept)

    def refused(_: int) -> str:
        try:
            m.privatize_counted(["a b c d"] * 2000, replacements=kept)
        except fastdx.ParameterError as e:
            return str(e)
        return "in use"

    with ThreadPoolExecutor(6) as pool:
        assert all("in use" in said for said in pool.map(refused, range(120), timeout=60))
