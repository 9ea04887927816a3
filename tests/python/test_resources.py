"""Memory, threads, and mechanisms that are pickled as the file they came from."""

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fastdx
from fastdx import Cover, Embedding, MultivariateLaplace, Tem

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
    ids = np.concatenate([np.full(4000, 7), np.arange(3000)])
    seeded = [Tem(SPACE, 3.0, cover=cover, cache_bytes=b, seed=4) for b in (0, 400_000, 10**9)]
    drawn = [np.concatenate([m.privatize_ids(ids) for _ in range(3)]) for m in seeded]
    assert (drawn[0] == drawn[1]).all() and (drawn[0] == drawn[2]).all()
    # And without a seed: 600,000 draws of one word against its law.
    law = seeded[0].probabilities("w7")
    often = law * 600_000 > 10
    for limit in (0, 10**9):
        tem = Tem(SPACE, 3.0, cover=cover, cache_bytes=limit, threads=2)
        counts = np.zeros(3000)
        for _ in range(20):
            counts += np.bincount(tem.sample("w7", 30_000), minlength=3000)
        expected = law * 600_000
        chi2 = ((counts - expected)[often] ** 2 / expected[often]).sum()
        degrees = often.sum()
        # Wilson and Hilferty, six deviations: false alarms below 1e-8.
        scale = 2 / (9 * degrees)
        assert chi2 <= degrees * (1 - scale + 6 * scale**0.5) ** 3


def test_the_environment_sets_the_bound() -> None:
    code = (
        "import numpy, fastdx; t = fastdx.Tem(epsilon=3.0); "
        "t.privatize_ids(numpy.arange(20000)); print(t.cached_bytes)"
    )
    for value, most in (("1000000", 1_000_000), ("0", 0)):
        env = {**os.environ, "FASTDX_CACHE_BYTES": value}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, check=False, capture_output=True, text=True
        )
        assert int(done.stdout) <= most
    env = {**os.environ, "FASTDX_CACHE_BYTES": "much"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=False, capture_output=True, text=True
    )
    assert "FASTDX_CACHE_BYTES must be" in done.stderr


def test_threads_are_those_that_were_asked_for() -> None:
    code = (
        "import sys, threading, numpy, fastdx; from pathlib import Path\n"
        "m = fastdx.Tem(epsilon=3.0, threads=int(sys.argv[1]))\n"
        "m.privatize_ids(numpy.arange(20000))\n"
        "names = [p.read_text().strip() for p in Path('/proc/self/task').glob('*/comm')]\n"
        "print(sum(n.startswith('fastdx-') for n in names))"
    )
    if not Path("/proc/self/task").is_dir():
        pytest.skip("no /proc here")
    for threads in (1, 3):
        done = subprocess.run(
            [sys.executable, "-c", code, str(threads)], capture_output=True, text=True, check=True
        )
        assert int(done.stdout) == threads


def test_bad_resources_are_refused() -> None:
    with pytest.raises(fastdx.ParameterError, match="threads"):
        Tem(SPACE, 1.0, threads=0)
    with pytest.raises(fastdx.ParameterError, match="threads"):
        Tem(SPACE, 1.0, threads=5000)
    with pytest.raises(fastdx.ParameterError, match="cache_bytes"):
        Tem(SPACE, 1.0, cache_bytes=-1)
    with pytest.raises(fastdx.InputTypeError, match="cache_bytes"):
        Tem(SPACE, 1.0, cache_bytes=1.5)  # type: ignore[arg-type]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "words.fdx"
    Tem.certified(Embedding(WORDS[:300], SPACE.vectors[:300]), 1.0, gamma=3.0, cover=4).save(path)
    old = time.time() - 3600
    os.utime(path, (old, old))
    return path


def test_a_loaded_tem_is_pickled_as_its_file(index: Path) -> None:
    nominal = Tem.load(index, 1.0, gamma=3.0).space
    assert isinstance(nominal, Embedding)
    tem = Tem.load(index, 0.7, gamma=3.0, oov="mask", cache_bytes=1000, threads=1)
    data = pickle.dumps(tem)
    assert len(data) < 2000 and len(pickle.dumps(tem.space)) < 1000
    copies = [pickle.loads(data), pickle.loads(data)]
    for copy in copies:
        assert repr(copy) == repr(tem) and (copy.cache_bytes, copy.threads) == (1000, 1)
        assert copy.cover == tem.cover and len(pickle.dumps(copy)) < 2000
        assert (copy.probabilities("w5") == tem.probabilities("w5")).all()
    noise = MultivariateLaplace(Tem.load(index, 1.0).embedding, 3.0)
    assert len(pickle.dumps(noise)) < 2000
    assert pickle.loads(pickle.dumps(noise)).space.words[:2] == ("w0", "w1")
    # What was computed since is no part of the file.
    listed = tem.build_lists(k=20)
    assert len(pickle.dumps(listed)) > 20_000
    assert pickle.loads(pickle.dumps(listed)).lists_k == 20
    other = Tem.load(index, 0.7, cover=Cover.nearest(tem.space, 9))
    assert pickle.loads(pickle.dumps(other)).cover.k >= 9


def test_by_value_the_file_is_not_needed(index: Path) -> None:
    tem = Tem.load(index, 0.7, pickle_by="value")
    data = pickle.dumps(tem)
    index.unlink()
    assert len(data) > 10_000 and pickle.loads(data).cover == tem.cover
    with pytest.raises(fastdx.ParameterError, match="pickle_by"):
        Tem.load(index, 1.0, pickle_by="name")


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
    certified = Tem.certified(Embedding(WORDS[:50], SPACE.vectors[:50]), 1.0, gamma=3.0)
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


def test_what_was_checked_is_not_read_again(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file of some age is known by its device, number and time of change.
    first = pickle.dumps(Tem.load(index, 0.7))
    time.sleep(2.2)
    data = pickle.dumps(Tem.load(index, 0.7))
    assert len(data) > len(first), "with the stamp, which a file just written has not"
    code = (
        "import pickle, sys; t = pickle.loads(sys.stdin.buffer.read()); "
        "u = pickle.loads(pickle.dumps(t)); print(t.cover == u.cover, len(t.space))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.split() == [b"True", b"300"]
