"""Text in, text out."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import fastdx
from fastdx import Embedding, FiniteLaw, Tem
from helpers.command import peak
from helpers.errors import origins

E2 = Embedding(["cat", "dog", "don't", "café", "Paris", "3.14"], np.eye(6) * 100)
SURE = Tem(E2, 1e6, gamma=np.inf, oov="keep")  # every known word becomes itself


@pytest.mark.parametrize(
    ("oov", "expected"),
    [("keep", "cat Zyx, dog"), ("mask", "cat [MASK], dog"), ("drop", "cat, dog")],
)
def test_unknown_words(oov: str, expected: str) -> None:
    assert Tem(E2, 1e6, gamma=np.inf, oov=oov).privatize("cat Zyx, dog") == expected


def test_dropping_at_the_ends() -> None:
    m = Tem(E2, 1e6, gamma=np.inf, oov="drop")
    assert m.privatize("Zyx cat Zyx dog Zyx") == " cat dog"
    assert m.privatize_tokens(["Zyx", "cat"]) == ["cat"]


def test_unknown_words_are_errors_that_name_their_place() -> None:
    with pytest.raises(KeyError, match="word 1 of text 0, at byte 4, of 3 char") as e:
        Tem(E2, 1e6, gamma=np.inf, oov="error").privatize("cat Zyx, dog")
    assert isinstance(e.value, fastdx.UnknownWordError) and "Zyx" not in str(e.value)
    assert (e.value.word, e.value.text, e.value.start) == ("Zyx", 0, 4)


def test_unknown_words_are_never_released_by_default(mechanism: type) -> None:
    m = mechanism(E2, 5.0)
    secrets = ["zyxwv", "john.smith@example.com", "555-0199", "https://x.org/y?z", "😀", "日本語",
               "\U000e0073\U000e0065"]  # fmt: skip
    known = set(E2.words)
    for secret in secrets:
        out = m.privatize(f"cat {secret} dog")
        assert secret not in out
        assert set(out.replace("-", " ").split()) <= known


def test_skipped_words_stay_as_they_are() -> None:
    m = Tem(E2, 1e-3, skip={"THE", "a"})
    out = m.privatize("The cat and A dog")
    assert out.startswith("The ") and " A " in out
    assert m.skip == {"the", "a"}


def test_counts() -> None:
    texts, counts = Tem(E2, 5.0, skip=["the"]).privatize_counted(["the cat", "zyx dog cat"])
    assert len(texts) == 2
    expected = {"words": 5, "replaced": 3, "unknown": 1, "skipped": 1, "misdecoded": 0,
                "numbers": 0, "dates": 0}  # fmt: skip
    assert 0 <= counts.pop("unchanged") <= 3 and counts == expected


@pytest.mark.parametrize("consistent", [False, True, "call"])
def test_words_that_come_back_are_counted(consistent: bool | str) -> None:
    texts = ["the cat, zyx, the dog", "cat"] * 50
    m = Tem(E2, 2.0, skip=["the"], consistent=consistent)
    private, counts = m.privatize_counted(texts)
    pairs = [p for a, b in zip(texts, private, strict=True)
             for p in zip(m.tokenize(a), b.replace(",", "").split(), strict=True)]  # fmt: skip
    came_back = sum(a == b for a, b in pairs if a in ("cat", "dog"))
    assert counts["unchanged"] == came_back
    sure = Tem(E2, 1e6, gamma=math.inf, consistent=consistent).privatize_counted(["cat dog"] * 9)
    assert sure[1]["unchanged"] == sure[1]["replaced"] == 18


def test_random_words_and_texts_and_blocks_stay_in_step() -> None:
    # Known words come back with certainty here, so every draw must stand at its own position.
    words = Embedding(["cat", "dog"], [[0.0], [100.0]])
    tem = Tem(words, 10.0, gamma=math.inf)
    for _ in range(100):
        first, *others = tem.privatize(["x cat x x dog cat x", "", "x", "cat", "dog x"])
        assert first.split()[1:6:3] == ["cat", "dog"] and first.split()[5] == "cat"
        assert others[0] == "" and others[1] in words and others[2] == "cat"
        assert others[3].startswith("dog ")
    long = "cat dog x " * (1 << 20)
    texts, counts = Tem(words, 10.0, gamma=math.inf, oov="keep").privatize_counted(
        [long, "dog", long]
    )
    assert texts == [long, "dog", long] and counts["words"] == 6 * (1 << 20) + 1


def test_long_text_and_many_texts(mechanism: type) -> None:
    m = mechanism(E2, 5.0)
    assert len(m.privatize("cat " * 600_000).split()) == 600_000
    assert len(m.privatize(["cat"] * 100_000)) == 100_000
    assert m.privatize([]) == []


def test_lone_surrogates_are_refused_by_their_place() -> None:
    text = "secret \ud800"
    tokens = [text]
    takers: list[Callable[[], object]] = [
        lambda: SURE.privatize(text),
        lambda: SURE.privatize(tokens),
        lambda: SURE.privatize_tokens(tokens),
        lambda: SURE.privatize_spans(text, [(0, 6)]),
        lambda: SURE.privatize_spans(text, select=["secret"]),
        lambda: SURE.privatize_counted(tokens),
        lambda: SURE.tokenize(text),
        lambda: SURE.sample(text, 1),
        lambda: SURE.probabilities(text),
        lambda: SURE.guarantee.bound(text, "a"),
        lambda: SURE.guarantee.price(text),
        lambda: SURE.space.distance("a", text),
        lambda: SURE.space.distances(text),
        lambda: SURE.space.ids(tokens),
        lambda: fastdx.tokenize(text),
        lambda: SURE.privatize(pd.Series(tokens, dtype=object)),
        lambda: SURE.privatize(pd.Series(tokens, dtype=pd.StringDtype("python"))),
    ]
    for take in takers:
        with pytest.raises(fastdx.InputTypeError, match="surrogate, character 7 of it") as refused:
            take()
        for error in origins(refused.value):
            assert "secret" not in repr(vars(error)) + repr(error) + repr(error.args)
            assert not hasattr(error, "object")


def test_only_a_run_that_would_be_read_otherwise_gets_spaces() -> None:
    space = Embedding(["tea", "½", "x", "y"], [[0.0], [1.0], [2.0], [3.0]])
    swapped = FiniteLaw(space, np.eye(4)[[1, 1, 2, 3]], certify=False)
    assert swapped.privatize("tea-tea  x-y") == "½ - ½  x-y"


def test_memory_of_madlib_does_not_grow_with_the_call() -> None:
    code = (
        "import sys, numpy, fastdx; m = fastdx.MultivariateLaplace(epsilon=12.0); "
        "m.privatize_ids(numpy.zeros(int(sys.argv[1]), dtype=numpy.uint32))"
    )
    # A (tokens × n) float64 array would be 40 MB.
    assert peak(code, 100_000)[0] - peak(code, 1000)[0] < 16
