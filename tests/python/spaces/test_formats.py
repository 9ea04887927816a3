"""Embeddings as users have them, good and bad."""

import gzip
import io
import pickle
import re
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Embedding, FormatError

WORDS = ["the", "of", "cat", "naïve", "12", "a.b"]
VECTORS = np.round(np.random.default_rng(3).normal(size=(6, 4)), 4).astype(np.float32)


def lines(words: list[str] = WORDS) -> list[str]:
    return [" ".join([w, *map(str, v.tolist())]) for w, v in zip(words, VECTORS, strict=False)]


def glove() -> bytes:
    return ("\n".join(lines()) + "\n").encode()


def word2vec_text() -> bytes:
    return b"6 4\n" + glove()


def fasttext() -> bytes:
    return ("6 4\n" + "".join(line + " \n" for line in lines())).encode()


def word2vec_binary(feed: bytes = b"\n") -> bytes:
    rows = (w.encode() + b" " + v.tobytes() + feed for w, v in zip(WORDS, VECTORS, strict=True))
    return b"6 4\n" + b"".join(rows)


FILES = {
    "glove": glove,
    "glove-crlf": lambda: glove().replace(b"\n", b"\r\n"),
    "glove-tabs": lambda: glove().replace(b" ", b"\t"),
    "glove-no-final-newline": lambda: glove().rstrip(),
    "word2vec-text": word2vec_text,
    "fasttext": fasttext,
    "word2vec-binary": word2vec_binary,
    "word2vec-binary-without-line-feeds": lambda: word2vec_binary(b""),
}


def same(e: Embedding, words: list[str] = WORDS) -> None:
    assert list(e.words) == words
    assert np.array_equal(e.vectors, VECTORS[: len(words)])
    assert e.ids(words).tolist() == list(range(len(words)))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_formats_are_found_by_content(tmp_path: Path, kind: str, zipped: bool) -> None:
    path = tmp_path / "misleading.npy"
    data = FILES[kind]()
    path.write_bytes(gzip.compress(data) if zipped else data)
    same(Embedding.load(path))
    same(Embedding.load(str(path), limit=100))
    same(Embedding.load(path, limit=2), WORDS[:2])
    assert Embedding.load(path, metric="manhattan").metric == "manhattan"
    named = re.sub("-(crlf|tabs|no|without).*", "", kind)
    same(Embedding.load(path, format=named))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_numpy_arrays(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "e.npy", VECTORS.astype(dtype))
    (tmp_path / "e.vocab").write_text("\n".join(WORDS) + "\n", "utf-8")
    e = Embedding.load(tmp_path / "e.npy")
    assert np.array_equal(e.vectors, VECTORS.astype(dtype).astype("f4")) and list(e.words) == WORDS
    (tmp_path / "other").write_text("\r\n".join(WORDS), "utf-8")
    assert list(Embedding.load(tmp_path / "e.npy", vocabulary=tmp_path / "other").words) == WORDS
    assert len(Embedding.load(tmp_path / "e.npy", limit=3)) == 3


def test_words_that_hold_spaces(tmp_path: Path) -> None:
    path = tmp_path / "glove.840B"
    words = ["the", ". . .", "at name@domain.com", "new york", "1 1/2", "cat"]
    path.write_text("\n".join(lines(words)), "utf-8")
    assert list(Embedding.load(path).words) == words


def test_one_dimensional_glove_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("7 3\n8 4\n9 5\n")
    e = Embedding.load(tmp_path / "g")
    assert e.words == ("7", "8", "9") and e.vectors.ravel().tolist() == [3, 4, 5]


def test_a_large_file_is_read_in_pieces(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(20_000, 25)).astype(np.float32)
    rows = (f"w{i} " + " ".join(map(repr, v.tolist())) for i, v in enumerate(vectors))
    text = "\n".join(rows) + "\n"
    path = tmp_path / "g"
    path.write_text(text)
    e = Embedding.load(path)
    assert np.array_equal(e.vectors, vectors) and e.words[-1] == "w19999"
    cut = text.split("\n")
    cut[15_000] = "oops " + cut[15_000]
    cut[15_000] = cut[15_000].replace(" ", " x", 2)
    path.write_text("\n".join(cut))
    with pytest.raises(FormatError, match="line 15001"):
        Embedding.load(path)


BAD = {
    "not UTF-8": (glove().replace("ï".encode(), b"\xff"), "line 4.*UTF-8"),
    "too few numbers": (glove().replace(b"cat ", b"cat"), "line 3.*3 numbers"),
    "a number too many": (glove().replace(b"cat ", b"cat 0.5 "), "line 3.*more than"),
    "a whole number too many": (glove().replace(b"cat ", b"cat 7 "), "line 3.*more than"),
    "text for a number": (b"a 1 2\nb 1 zwei\nc 1 2\n", "line 2: number 2 of 2 is not a number"),
    "text for a number, of two lines": (b"a 1 2\nb 1 zwei\n", "line 2: number 2 of 2 is not"),
    "text within the numbers": (b"a 1 2 3\nb 1 zwei 3\n", "line 2: number 2 of 3 is not a number"),
    "text for the first number": (b"a eins 2\nb 1 2\n", "line 1: number 1 of 2 is not a number"),
    "text after a space within a word": (b"a b 1 2\nc d 1 x\n", "line 2: number 2 of 2 is not"),
    "a number within a word": (b"a 1 2\n10 000 1 2\n", "line 2: more than the expected 2"),
    "NaN": (b"a 1 2\nb nan 2\n", "line 2.*not finite"),
    "infinity": (b"a 1 2\nb 1 -inf\n", "line 2.*not finite"),
    "beyond float32": (b"a 1 2\nb 1 1e39\n", "line 2.*not finite"),
    "empty line": (b"a 1 2\n\nb 1 2\n", "line 2.*empty"),
    "no word": (b"a 1 2\n 1 2\n", "line 2"),
    "empty file": (b"", "empty"),
    "only words": (b"a\nb\n", "without numbers"),
    "truncated word2vec text": (b"3 2\na 1 2\nb 1 2\n", "promises 3 words, the file holds 2"),
    "extended word2vec text": (b"1 2\na 1 2\nb 1 2\n", "promises 1 words, the file holds 2"),
    "truncated word2vec binary": (word2vec_binary()[:-9], "truncated"),
    "extended word2vec binary": (word2vec_binary() + b"more", "follow"),
    "binary not UTF-8": (word2vec_binary().replace(b"cat ", b"c\xfft "), "word 2.*UTF-8"),
    "binary NaN": (
        b"1 2\na " + struct.pack("<ff", 1.0, float("nan")) + b"\n", 'word 0 .*holds NaN',
    ),
    "huge dimension": (b"1 99999999999999\ncat 1 2\n", "promises 99999999999999 numbers"),
    "largest dimension": (b"1 18446744073709551615\ncat 1 2\n", "promises"),
    "huge promise": (b"99999999999 2\na " + struct.pack("<ff", 0.1, 0.2), "promises"),
    "truncated gzip": (gzip.compress(glove(), mtime=0)[:-12], "gzip"),
    "fortran npy": (b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': True, "
                    b"'shape': (1, 1), }" + b" " * 20, "Fortran|header"),
    "npy header cut": (b"\x93NUMPY\x01\x00\xff\xff{", "header"),
}  # fmt: skip


ARCHIVE = io.BytesIO()
np.savez(ARCHIVE, vectors=VECTORS)
ZIPPED = io.BytesIO()
with zipfile.ZipFile(ZIPPED, "w") as archive:
    archive.writestr("glove.txt", glove())
BAD |= {
    "pickle": (pickle.dumps({"vectors": VECTORS}), "pickle.*gensim.*save_word2vec_format"),
    "old pickle": (pickle.dumps({"vectors": VECTORS}, protocol=2), "pickle"),
    "packed pickle": (gzip.compress(pickle.dumps({"a": 1})), "pickle"),
    "NumPy archive": (ARCHIVE.getvalue(), r"NumPy archive \(\.npz\).*numpy\.save"),
    "zip": (ZIPPED.getvalue(), "zip archive: unpack it"),
    "zip cut": (ZIPPED.getvalue()[:20], "zip archive"),
    "UTF-16": (glove().decode().encode("utf-16"), "UTF-16: save it in UTF-8"),
    "a pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "Git LFS.*git lfs pull",
    ),
    "fastText model": (struct.pack("<ii", 793712314, 12) + bytes(64), r"fastText model.*\.vec"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, case: str) -> None:
    data, message = BAD[case]
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message) as e:
        Embedding.load(path)
    assert str(path) in str(e.value) and isinstance(e.value, ValueError)


def test_bad_arrays_and_vocabularies(tmp_path: Path) -> None:
    array, vocabulary, whole = tmp_path / "e.npy", tmp_path / "e.vocab", "a\nb\nc\nd\ne\nf\n"
    with pytest.raises(FileNotFoundError):
        Embedding.load(array, vocabulary=tmp_path / "none")
    for vectors, text, message in (
        (VECTORS, None, "no vocabulary"),
        (VECTORS, "a\nb\n", "2 words, and the array has 6 rows"),
        (VECTORS, "a\nb\nc\n\ne\nf\n", "line 4.*empty"),
        (VECTORS.astype("i4"), whole, "dtype"),
        (VECTORS[0], whole, "1 dimensions"),
        (np.asfortranarray(VECTORS), whole, "Fortran"),
    ):
        np.save(array, vectors)
        if text is not None:
            vocabulary.write_text(text)
        with pytest.raises(FormatError, match=message):
            Embedding.load(array)


def test_binary_numbers_that_look_like_line_feeds(tmp_path: Path) -> None:
    row = struct.pack("<II", 0x3F80000A, 0x3F0A0A0A)
    (tmp_path / "b").write_bytes(b"2 2\ncat " + row + b"\ndog " + row + b"\n")
    assert Embedding.load(tmp_path / "b").words == ("cat", "dog")


def test_int16_keeps_what_it_promises_and_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    edge = Embedding(["a"], [[0.9999990, 0.0001, 0.0]], metric="poincare")
    thin = Embedding(["z"], [[1e-45, 0.0]], metric="angular")
    for e in (edge, thin):
        try:
            e.save(tmp_path / "e", storage="int16")
        except fastdx.VectorError as error:
            assert "int16" in str(error)
        else:
            assert len(Embedding.load(tmp_path / "e")) == 1
    with pytest.raises(fastdx.VectorError, match='"z", rounded to int16'):
        thin.save(tmp_path / "e", storage="int16")
    e = Embedding([f"w{i}" for i in range(50)], np.random.default_rng(2).normal(size=(50, 9)) * 3)
    e.save(tmp_path / "e", storage="int16")
    back = Embedding.load(tmp_path / "e")
    largest = np.abs(e.vectors).max(axis=1, keepdims=True)
    assert (np.abs(back.vectors - e.vectors) <= 1.6e-5 * largest).all() and back.words == e.words


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as e:
        Embedding.load(tmp_path / "none")
    assert isinstance(e.value, fastdx.FastdxError) and e.value.filename == str(tmp_path / "none")
    with pytest.raises(OSError):
        Embedding.load(tmp_path)
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "no" / "folder"):
        with pytest.raises(OSError):
            Embedding(["a"], [[1.0]]).save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_first_of_repeated_words_counts(tmp_path: Path) -> None:
    path = tmp_path / "e.txt"
    path.write_bytes(b"a 1 2\nb 1 2\na 3 4\nc 5 6\nb 7 8\n")
    with pytest.warns(fastdx.FastdxWarning, match="2 entries of the file repeat a word"):
        e = Embedding.load(path)
    assert e.words == ("a", "b", "c") and e.vectors.tolist() == [[1, 2], [1, 2], [5, 6]]
    with pytest.warns(fastdx.FastdxWarning, match="repeat a word"):
        fastdx.from_spec({"mechanism": "tem", "epsilon": 1, "index": str(path)})


def test_a_byte_order_mark_is_part_of_no_word(tmp_path: Path) -> None:
    mark = "\ufeff".encode()
    for name, data in (
        ("glove", b"a 1 2\nb 3 4\n"),
        ("word2vec", b"2 2\na 1 2\nb 3 4\n"),
        ("packed", gzip.compress(mark + b"a 1 2\nb 3 4\n")),
    ):
        path = tmp_path / name
        path.write_bytes(data if name == "packed" else mark + data)
        assert Embedding.load(path).words == ("a", "b"), name
    np.save(tmp_path / "n.npy", VECTORS[:2])
    (tmp_path / "n.vocab").write_bytes(mark + b"a\nb\n")
    assert Embedding.load(tmp_path / "n.npy").words == ("a", "b")
    (tmp_path / "edges").write_bytes(mark + b"a\tb\nb\tc\n")
    assert fastdx.WordGraph(tmp_path / "edges").words == ("a", "b", "c")
    (tmp_path / "list").write_bytes(mark + b"a\n")
    e = Embedding(["a", "b"], [[0.0], [1.0]])
    assert fastdx.Tem(e, 1.0, exclude=tmp_path / "list").excluded == ["a"]


# Pickles of files of ours: test_resources.py.
def test_a_space_from_a_file_is_found_again(tmp_path: Path) -> None:
    """By a Spec, which needs no space, and by pickle, which does not hold it."""
    path = tmp_path / "e.npy"
    vectors = np.random.default_rng(3).normal(size=(3000, 20)).astype("f4")
    np.save(path, vectors)
    path.with_suffix(".vocab").write_text("\n".join(f"w{i}" for i in range(3000)))
    tem = fastdx.Tem(Embedding.load(path, metric="manhattan"), 3.0)
    assert tem.spec["index"]["file"] == str(path)
    assert fastdx.from_spec(tem.spec) == pickle.loads(pickle.dumps(tem)) == tem
    for held in (tem, tem.space, tem.guarantee, fastdx.BagOfWords(tem)):
        assert len(pickle.dumps(held)) < 10_000, held
    np.save(path, vectors[::-1])
    for again in (lambda: fastdx.from_spec(tem.spec), lambda: pickle.loads(pickle.dumps(tem))):
        with pytest.raises(fastdx.ParameterError, match="index"):
            again()


@pytest.mark.parametrize("kind", [fastdx.Tem, fastdx.MultivariateLaplace, fastdx.HyperbolicLaplace])
def test_a_mechanism_on_built_in_words_is_pickled_by_their_name(
    kind: type[fastdx.Mechanism],
) -> None:
    for m in (kind(None, 12.0), fastdx.Tem.recommended()):
        assert pickle.loads(pickle.dumps(m)) == m
        assert len(pickle.dumps(m)) < 10_000 and len(pickle.dumps(m.guarantee)) < 10_000
