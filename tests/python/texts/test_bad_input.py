"""Bad input: a clear error or the right answer, never a panic."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdx
from fastdx import (
    Cover,
    Embedding,
    Mahalanobis,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
    Vickrey,
)
from fastdx._core import unpacked_space
from fastdx.lab.noise import multivariate_laplace
from helpers.spaces import normal

NAN, INF = float("nan"), float("inf")
E = Embedding(["a", "b", "c"], [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
TEM, MADLIB = Tem(E, 1.0), MultivariateLaplace(E, 1.0)
P, T, S, V = ValueError, TypeError, fastdx.ShapeError, fastdx.VectorError
W, K = fastdx.WordIdError, fastdx.UnknownWordError

CASES: list[tuple[str, type[BaseException], str, Callable[[], Any]]] = [
    # parameters; others in refused_by_name of tests/it/spec.rs
    *[(f"{m.__name__} epsilon {e!r}", error, said, lambda m=m, e=e: m(E, e))
      for error, said, wrong in ((P, "epsilon must be", (0.0, -1.0, NAN, INF, -INF, 0, -3)),
                                 (T, "epsilon", ("5", None, [1.0], True, 1j)))
      for m in (Tem, MultivariateLaplace) for e in wrong],
    ("no epsilon", T, "epsilon is missing", lambda: Tem(E)),
    ("threads 5000", P, "threads", lambda: Tem(E, 1.0, threads=5000)),
    ("cache_bytes -1", P, "cache_bytes", lambda: Tem(E, 1.0, cache_bytes=-1)),
    ("cache_bytes text", T, "cache_bytes",
     lambda: Tem(E, 1.0, cache_bytes="1")),  # type: ignore[arg-type]
    ("consistent 1", P, "consistent", lambda: Tem(E, 1.0, consistent=1)),
    *[(f"mixing {x}", P, "mixing", lambda m=m, x=x: m(E, 1.0, mixing=x))
      for m in (Mahalanobis, Vickrey) for x in (-0.1, 1.0, NAN)],
    *[(f"tuning {x}", P, "tuning", lambda x=x: Vickrey(E, 1.0, tuning=x))
      for x in (-0.1, 1.1, NAN)],
    *[("elliptical on blocks", P, "Euclidean", lambda m=m: m(
        Embedding(["a"], [[1.0]], metric="manhattan"), 1.0)) for m in (Mahalanobis, Vickrey)],
    ("embedding is a list", T, "embedding must be", lambda: Tem([1], 1.0)),
    *[(f"{m.__name__} of its epsilon alone", T, r"embedding must be .*name: epsilon=3\.0$",
       lambda m=m, e=e: m(e))
      for m in (Tem, MultivariateLaplace) for e in (3.0, 3, np.float32(3.0))],
    ("epsilon first", T, "embedding must be .*, not float$", lambda: Tem(3.0, E)),
    ("cover 0", P, "^cover must be between 1 and the 3 outputs, got 0",
     lambda: Tem(E, 1.0, cover=0)),
    ("cover beyond the words", P, "^cover must be between 1 and the 3 outputs, got 4",
     lambda: NeighborResponse(E, 1.0, cover=4)),
    ("remap 0", P, "^remap must be between", lambda: MultivariateLaplace(E, 1.0, remap=0)),
    ("remap a str", T, "^remap must be an int", lambda: MultivariateLaplace(E, 1.0, remap="x")),
    ("nearest cover 0", P, "^k must be between", lambda: Cover.nearest(E, 0)),
    ("with_epsilon 0", P, "epsilon", lambda: TEM.with_epsilon(0.0)),
    ("with_epsilon text", T, "epsilon", lambda: MADLIB.with_epsilon("x")),
    ("gamma negative", P, "gamma must be", lambda: Tem(E, 1.0, gamma=-1e-9)),
    ("gamma NaN", P, "gamma must be", lambda: Tem(E, 1.0, gamma=NAN)),
    ("gamma text", T, "gamma", lambda: Tem(E, 1.0, gamma="1")),
    *[(f"beta {b}", P, "beta must be", lambda b=b: Tem(E, 1.0, beta=b)) for b in (0, 1, -1, NAN)],
    ("oov None", T, "oov", lambda: Tem(E, 1.0, oov=None)),
    ("search unknown", P, "search must be", lambda: MultivariateLaplace(E, 1.0, search="annoy")),
    ("skip is a str", T, "skip must be a list", lambda: Tem(E, 1.0, skip="the")),
    ("skip holds a number", T, r"skip\[0\]", lambda: Tem(E, 1.0, skip=[1])),
    ("seed negative", P, "seed must be", lambda: Tem(E, 1.0, seed=-1)),
    ("seed too large", P, "seed must be", lambda: Tem(E, 1.0, seed=2**64)),
    ("seed a float", T, "seed must be", lambda: Tem(E, 1.0, seed=1.5)),
    ("cosine", P, "triangle inequality", lambda: Embedding(["a"], [[1.0]], metric="cosine")),
    ("metric unknown", P, "metric must be", lambda: Embedding(["a"], [[1.0]], metric="l2")),
    ("metric None", T, "metric", lambda: Embedding(["a"], [[1.0]], metric=None)),
    ("madlib on angles", P, "Euclidean", lambda: MultivariateLaplace(
        Embedding(["a"], [[1.0]], metric="angular"), 1.0)),
    # the embedding
    ("no word", P, "words must be", lambda: Embedding([], np.zeros((0, 3)))),
    ("empty word", P, "position 1", lambda: Embedding(["a", ""], [[1.0], [2.0]])),
    ("repeated word", fastdx.DuplicateWordError, '"a" is repeated: entries 0 and 2',
     lambda: Embedding(["a", "b", "a"], np.eye(3))),
    ("words a str", T, "words must be a list", lambda: Embedding("abc", np.eye(3))),
    ("words bytes", T, r"words\[0\]", lambda: Embedding([b"a"], [[1.0]])),
    ("rows missing", S, r"\(2, n\)", lambda: Embedding(["a", "b"], [[1.0]])),
    ("one-dimensional", S, "two dimensions", lambda: Embedding(["a"], [1.0])),
    ("three-dimensional", S, "two dimensions", lambda: Embedding(["a"], [[[1.0]]])),
    ("no column", S, "n at least 1", lambda: Embedding(["a"], np.zeros((1, 0)))),
    ("ragged", P, "inhomogeneous", lambda: Embedding(["a", "b"], [[1.0], [1.0, 2.0]])),
    ("NaN vector", V, '"b" holds NaN', lambda: Embedding(["a", "b"], [[1.0], [NAN]])),
    ("infinite vector", V, '"a" holds -inf', lambda: Embedding(["a"], [[-INF]])),
    ("float64 beyond float32", V, '"a" holds inf', lambda: Embedding(["a"], [[1e300]])),
    ("complex", T, "complex", lambda: Embedding(["a"], [[1j]])),
    ("bool", T, "bool", lambda: Embedding(["a"], [[True]])),
    ("strings", T, "dtype", lambda: Embedding(["a"], [["1.0"]])),
    ("objects", T, "object", lambda: Embedding(["a"], [[None]])),
    ("outside the ball", V, "norm", lambda: Embedding(["a"], [[1.0, 0.0]], metric="poincare")),
    ("zero angle", V, "direction", lambda: Embedding(["z"], [[0.0, 0.0]], metric="angular")),
    ("on the ball's edge in eight lanes", V, "norm", lambda: Embedding(
        ["a"], [[0.5, 0.5, 0.5, 0.5]], metric="poincare")),
    ("nearest beyond memory", MemoryError, "need", lambda: Embedding(
        [f"w{i}" for i in range(1 << 20)], np.zeros((1 << 20, 1))).nearest(
            np.zeros((1 << 24, 1)), k=1 << 20)),
    # look-ups
    ("ids of an unknown word", K, r"words\[1\], of 2 char", lambda: E.ids(["a", "zz"])),
    ("ids of a str", T, "words must be a list", lambda: E.ids("a")),
    ("distance", K, '"zz"', lambda: E.distance("a", "zz")),
    ("distances", K, '"zz"', lambda: E.distances("zz")),
    ("probabilities", K, '"zz"', lambda: TEM.probabilities("zz")),
    ("sample", K, '"zz"', lambda: TEM.sample("zz", 3)),
    ("sample -1", P, "size must be", lambda: TEM.sample("a", -1)),
    ("sample 1.5", T, "size must be", lambda: TEM.sample("a", 1.5)),
    ("sample 2^62", P, "memory", lambda: TEM.sample("a", 2**62)),
    ("nearest k=0", P, "k must be", lambda: E.nearest([[1.0, 1.0]], k=0)),
    ("nearest k=4", P, "k must be between 1 and the 3", lambda: E.nearest([[1.0, 1.0]], k=4)),
    ("nearest width", S, r"\(m, 2\)", lambda: E.nearest([[1.0]])),
    ("nearest NaN", V, "query 1 holds NaN", lambda: E.nearest([[1.0, 1.0], [NAN, 0.0]])),
    # ids
    ("id too large", W, "id 3 at position 1", lambda: TEM.privatize_ids(np.array([0, 3]))),
    ("id 2^32", W, "id 4294967296", lambda: TEM.privatize_ids(np.array([2**32]))),
    ("id -1", P, "at least 0", lambda: TEM.privatize_ids([-1])),
    ("float ids", T, "float64", lambda: MADLIB.privatize_ids(np.array([0.0]))),
    ("text ids", T, "whole numbers", lambda: MADLIB.privatize_ids(["a"])),
    # text
    ("bytes", T, "text must be a str, a list.*not bytes", lambda: TEM.privatize(b"a")),
    ("number", T, "text must be a str, a list.*not int", lambda: TEM.privatize(3)),
    ("list with a number", T, r"text\[1\]", lambda: TEM.privatize(["a", 3])),
    ("dict", T, "dict", lambda: TEM.privatize({"a": 1})),
    ("tokens a str", T, "tokens must be a list", lambda: TEM.privatize_tokens("a b")),
    ("oov error", K, "token 1, of 2 characters",
     lambda: Tem(E, 1.0, oov="error").privatize_tokens(["a", "zz"])),
    # noise
    ("n=0", P, "n must be", lambda: multivariate_laplace(0, 1.0, 3)),
    ("n=-1", P, "n must be", lambda: multivariate_laplace(-1, 1.0, 3)),
    ("size=-1", P, "size must be", lambda: multivariate_laplace(2, 1.0, -1)),
    ("size=2^60", P, "memory", lambda: multivariate_laplace(2, 1.0, 2**60)),
    ("noise beyond f64", P, "finite noise", lambda: multivariate_laplace(3, 6e-309, 2)),
    ("noise epsilon", P, "epsilon must be", lambda: multivariate_laplace(2, NAN, 3)),
    ("perturb width", S, r"\(m, 2\)", lambda: MADLIB.perturb([[1.0]])),
    ("perturb NaN", V, "row 1 holds NaN", lambda: MADLIB.perturb([[1.0, 1.0], [0.0, NAN]])),
    # files
    ("limit 0", P, "limit must be", lambda: Embedding.load("x", limit=0)),
    ("format unknown", P, "format must be one of", lambda: Embedding.load("x", format="hdf5")),
    ("storage unknown", P, "storage must be", lambda: E.save("x", storage="int4")),
    ("missing file", FileNotFoundError, "No such file", lambda: Embedding.load("/no/such")),
    ("damaged pickle", fastdx.CorruptFileError, "not a", lambda: unpacked_space(b"x")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "message", "call"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_clear_error(error: type[BaseException], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error, match=message):
        call()


TEXTS = [
    "", " ", "\n\n", "\0", "a\0b", "😀", "👩‍👩‍👧‍👦", "e\u0301", "\u202eabc\u202c", "\ufeffa",
    "a" * 10**6,
    "ﬁ ß İ ŉ", "\u200b\u200d", "'" * 50, "a'b'c'", "@@@@", "www.", "://", "1.2.3.4", "\U0010ffff",
    "한국어 ไทย العربية", "a\u2028b\x85c", "\r", "a\tb\vc\fd",
]  # fmt: skip


@pytest.mark.parametrize("oov", ["random", "drop", "mask", "keep"])
@pytest.mark.parametrize("text", TEXTS)
def test_odd_text_is_taken(text: str, oov: str) -> None:
    for m in (Tem(E, 1.0, oov=oov), MultivariateLaplace(E, 1.0, oov=oov)):
        out = m.privatize(text)
        assert isinstance(out, str)
        assert m.privatize([text, text])[0].count("\n") == text.count("\n")
        assert len(m.privatize_tokens([text])) == (0 if oov == "drop" and text != "a" else 1)


@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 300])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-3, 1.0, 1e3, 1e300])
def test_extremes_are_ordinary(words: int, n: int, epsilon: float) -> None:
    e = normal(words, n, n)
    for gamma in (None, 0.0, INF):
        law = Tem(e, epsilon, gamma=gamma).probabilities("w0")
        assert np.isfinite(law).all() and (law > 0).all() and abs(law.sum() - 1) < 1e-12
        assert Tem(e, epsilon, gamma=gamma).sample("w0", 100).max() < words
    assert MultivariateLaplace(e, epsilon).sample("w0", 100).max() < words
    assert np.isfinite(multivariate_laplace(n, epsilon, 10)).all()


def test_zero_rows_are_ordinary() -> None:
    assert E.nearest(np.zeros((0, 2)), k=2)[0].shape == (0, 2)
    assert MADLIB.perturb(np.zeros((0, 2))).shape == (0, 2)
    assert multivariate_laplace(4, 1.0, 0).shape == (0, 4)
    assert TEM.privatize_tokens([]) == []
