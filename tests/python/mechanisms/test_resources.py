"""Memory, threads, and mechanisms that are pickled as the file they came from."""

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Cover, Embedding, MultivariateLaplace, Tem
from helpers.command import MAIN, peak, python, run
from helpers.copies import assert_copies
from helpers.draws import assert_draws

RNG = np.random.default_rng(3)
WORDS = [f"w{i}" for i in range(3000)]
SPACE = Embedding(WORDS, RNG.normal(size=(3000, 8)))


@pytest.mark.parametrize("limit", [0, 10_000, 300_000, 20_000_000])
def test_no_more_is_kept_than_allowed(limit: int) -> None:
    tem = Tem(SPACE, 2.0, cache_bytes=limit)
    assert tem.cache_bytes == limit and tem.cached_bytes == 0
    sibling = tem.with_epsilon(5.0)
    ids = np.tile(np.arange(3000), 20)
    for m in (tem, sibling) * 3:
        m.privatize_ids(ids)
        assert m.cached_bytes <= limit
    assert (tem.cached_bytes > limit // 4) == (limit > 100_000)
    if limit == 20_000_000:
        both = tem.cached_bytes
        del m, sibling
        assert tem.cached_bytes < both, "a copy that is gone keeps nothing"


@pytest.mark.parametrize("cover", [None, 20])
def test_the_law_does_not_depend_on_what_is_kept(cover: int | None) -> None:
    few = Embedding(WORDS[:800], SPACE.vectors[:800])
    ids = np.concatenate([np.full(500, 7), np.arange(800)])
    seeded = [Tem(few, 3.0, cover=cover, cache_bytes=b, seed=4) for b in (0, 100_000, 10**9)]
    drawn = [np.concatenate([m.privatize_ids(ids) for _ in range(2)]) for m in seeded]
    assert (drawn[0] == drawn[1]).all() and (drawn[0] == drawn[2]).all()
    # And without a seed: draws of one word against its law.
    for limit in (0, 10**9):
        tem = Tem(few, 3.0, cover=cover, cache_bytes=limit, threads=2)
        assert_draws(tem, "w7", seeded[0].probabilities("w7"), 300_000)


def test_the_environment_sets_the_bound() -> None:
    code = (
        "import numpy, fastdx; t = fastdx.Tem(epsilon=3.0); "
        "t.privatize_ids(numpy.arange(5000)); print(t.cached_bytes)"
    )
    assert int(python(code, FASTDX_CACHE_BYTES="100000").stdout) <= 100_000
    done = python(code, code=1, FASTDX_CACHE_BYTES="much")
    assert "FASTDX_CACHE_BYTES must be" in done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc here")
def test_threads_are_those_that_were_asked_for() -> None:
    code = (
        "import numpy, fastdx; from pathlib import Path\n"
        "m = fastdx.Tem(epsilon=3.0, threads=3)\n"
        "m.privatize_ids(numpy.arange(5000))\n"
        "names = [p.read_text().strip() for p in Path('/proc/self/task').glob('*/comm')]\n"
        "print(sum(n.startswith('fastdx-') for n in names))"
    )
    assert int(python(code).stdout) == 3


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "words.fdx"
    Tem(Embedding(WORDS[:300], SPACE.vectors[:300]), 1.0, gamma=3.0, cover=4, certified=True).save(
        path
    )
    return path


def test_a_loaded_tem_is_pickled_as_its_file(index: Path) -> None:
    tem = Tem.load(index, 0.7, gamma=3.0, oov="mask", cache_bytes=1000, threads=1)
    data = pickle.dumps(tem)
    assert len(data) < 2000 and len(pickle.dumps(tem.space)) < 1000
    copy = pickle.loads(data)
    assert_copies(tem)
    assert (copy.cache_bytes, copy.threads) == (1000, 1) and len(pickle.dumps(copy)) < 2000
    assert len(pickle.dumps(MultivariateLaplace(tem.embedding, 3.0))) < 2000
    # Later results are no part of the file.
    listed = tem.build_lists(k=20)
    assert len(pickle.dumps(listed)) > 20_000
    assert pickle.loads(pickle.dumps(listed)).lists_k == 20
    other = Tem.load(index, 0.7, cover=Cover.nearest(tem.space, 9))
    assert pickle.loads(pickle.dumps(other)).cover.k >= 9


def test_a_missing_or_other_file_is_an_error_that_names_it(index: Path) -> None:
    tem = Tem.load(index, 0.7)
    data = pickle.dumps(tem)
    index.rename(index.with_name("moved.fdx"))
    with pytest.raises(FileNotFoundError, match=r"words\.fdx"):
        pickle.loads(data)
    Tem(Embedding(WORDS[:300], SPACE.vectors[1:301]), 1.0).save(index)
    with pytest.raises(fastdx.CorruptFileError, match=r"words\.fdx.*another file"):
        pickle.loads(data)
    index.write_bytes(b"no index")
    with pytest.raises(fastdx.CorruptFileError, match=r"words\.fdx"):
        pickle.loads(data)


def test_certificates_are_claimed_only_of_what_was_checked(index: Path) -> None:
    certified = Tem(Embedding(WORDS[:50], SPACE.vectors[:50]), 1.0, gamma=3.0, certified=True)
    path = index.with_name("certified.fdx")
    certified.save(path)
    nominal = certified.nominal
    assert Tem.load(path, nominal, gamma=3.0).epsilon <= 1.0 < nominal

    def epsilon(verify: bool) -> float:
        return float(pickle.loads(pickle.dumps(Tem.load(path, nominal, gamma=3.0, verify=verify)))
                     .epsilon)  # fmt: skip

    assert epsilon(verify=True) <= 1.0 and epsilon(verify=False) == nominal
    # Damage behind the header, which keeps its fingerprint, is found where the file has changed.
    data = pickle.dumps(Tem.load(path, nominal, gamma=3.0))
    damaged = bytearray(path.read_bytes())
    damaged[-100] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(fastdx.CorruptFileError, match="checksum"):
        pickle.loads(data)


def repeated(start: bytes, part: bytes, count: int, end: bytes) -> bytes:
    """Pack so many parts, as quickly as one."""
    each = 1 + (1 << 22) // len(part)
    many = gzip.compress(part * each, 1)
    return gzip.compress(start) + many * (count // each + 1) + gzip.compress(end)


MILLIONS = 30_000_000
ROW = "a row of more than 16777216 characters"
TEXTS = "a record of more than 524288 texts"
LINE = "more than 16777216 bytes without a line end"
BOMBS = {
    "quoted line feeds": ("csv", b't\n"', b"\n", MILLIONS, b'"\n',
                          "line 2: a row of more than 1048576 characters"),
    "quoted fields": ("csv", b't\n"', b'a\n","a\n', 5_000_000, b'"\n', f"line 2: {ROW}"),
    "empty strings": ("jsonl", b'{"t":[', b'"",', MILLIONS // 3, b'""]}\n', f"line 1: {LINE}"),
    "of an array": ("json", b'[\n{"t":[', b'"",', 5_000_000, b'""]}]', f"line 2: {TEXTS}"),
    "other values": ("json", b'{"t":"a","u":[', b"[],", MILLIONS // 3, b"0]}",
                     "line 1: not JSON, or a record of more than 16777216 bytes"),
    "white space": ("json", b"[", b" ", 400_000_000, b"]",
                    "line 1: white space of more than 16777216 bytes"),
    "wide rows": ("csv", b"t" + b",u" * 30_000 + b"\n", b"," * 30_000 + b"\n", 600, b"", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", BOMBS)
def test_no_file_takes_more_memory_than_a_record_may(tmp_path: Path, case: str) -> None:
    kind, start, part, count, end, message = BOMBS[case]
    path, out = tmp_path / f"in.{kind}.gz", tmp_path / f"out.{kind}"
    path.write_bytes(repeated(start, part, count, end))
    assert path.stat().st_size < 2_000_000
    args = ("privatize", path, "--column", "t", "--epsilon", "3", "-q", "-o", out)
    # Each line feed takes a step of Python.
    fewer = ("--max-record", "1") if case == "quoted line feeds" else ()
    used, told = peak(MAIN, *args, *fewer)
    assert message in told.replace(str(path), "") and "Traceback" not in told, told
    if message:
        assert f"{path}, line" in told and not out.exists()
        assert "--max-record allows more" in told
    assert used < 560, used


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_a_larger_record_can_be_allowed(tmp_path: Path, kind: str) -> None:
    path, out = tmp_path / f"in.{kind}", tmp_path / "out"
    text = ("coffee-tea" + " " * 430) * 40_000
    lines = {"csv": f't\n"{text}"\n', "json": f'[{{"t":"{text}"}}]', "jsonl": f'{{"t":"{text}"}}\n'}
    path.write_text(lines[kind])
    args = ("privatize", path, "--column", "t", "--epsilon", "3", "-q", "-o", out)
    assert "more than 16777216 " in peak(MAIN, *args)[1] and not out.exists()
    assert peak(MAIN, *args, "--max-record", "32")[1] == ""
    assert out.read_text().count("-") == 40_000


@pytest.mark.parametrize("size", ["0", "1025", "1.5", "-1", "much"])
def test_wrong_sizes_of_records(size: str) -> None:
    told = run("privatize", "--max-record", size, stdin="tea").stderr
    assert "--max-record" in told


def test_many_empty_texts_take_no_more_than_they_must() -> None:
    code = "import fastdx; fastdx.Tem(epsilon=5.0).privatize([''] * 1_000_000)"
    # Two lists and a table of strings.
    assert peak(code)[0] < 230


@pytest.mark.parametrize("part", [b" 0", b"\0", b"a 1 2\n"])
def test_a_small_file_does_not_become_a_large_embedding(tmp_path: Path, part: bytes) -> None:
    path = tmp_path / "words.gz"
    path.write_bytes(repeated(b"word 0", part, 1_500_000_000 // len(part), b"\n"))
    code = """
import sys, fastdx
try: fastdx.Embedding.load(sys.argv[1])
except fastdx.FormatError as error: print(error, file=sys.stderr)
"""
    used, told = peak(code, path)
    size = path.stat().st_size
    assert (
        f"{path}: {size} bytes of gzip data hold more than 268435456" in told and size < 8_000_000
    )
    assert used < 600, used
