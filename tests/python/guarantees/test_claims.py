"""No claim outlives what it rests on: what is printed of privacy, against what is drawn."""

import math
import os
import pickle
import random
import re
import sqlite3
import struct
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastdx
from fastdx import BagOfWords, Embedding, Mechanism, MultivariateLaplace, Tem, WordGraph
from fastdx._shared.rounded import up
from fastdx.budget import BudgetExceededError, Ledger
from helpers.bounds import allowed, assert_exact_bound
from helpers.charging import begun, charged
from helpers.command import Command, fails, run
from helpers.errors import refused
from helpers.laws import law_of, loss_of
from helpers.registry import KINDS, made, space
from helpers.spaces import numbered

HYPHENS = Embedding(
    ["e-mail", "e", "mail", "merry-go-round", "go", "round", "letter"],
    [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0]],
)
POINCARE = Embedding(
    [f"w{i}" for i in range(5)],
    [[0.0, 0.0], [0.1, 0.2], [0.5, -0.4], [0.99, 0.0], [0.0, 0.9]],
    metric="poincare",
)


def clustered(words: int = 60) -> Embedding:
    rng = np.random.default_rng(7)
    return numbered(rng.normal(size=(words, 3)) * rng.choice([0.05, 2.0], words)[:, None])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    path = tmp_path_factory.mktemp("claims") / "certified.fdx"
    tem = Tem(clustered(), 1.0, gamma=3.0, certified=True)
    tem.save(path)
    assert Tem.load(path, tem.nominal, gamma=3.0).guarantee.certificate is not None
    return path, tem.nominal


class TestCertificates:
    def test_another_space_or_law_loses_it(self, file: tuple[Path, float], tmp_path: Path) -> None:
        path, nominal = file
        e = Embedding.load(path)
        e.save(tmp_path / "short.fdx", storage="int16")
        spaces: list[tuple[Path, dict[str, Any]]] = [
            (path, {"metric": "chebyshev"}), (path, {"metric": "manhattan"}),
            (path, {"metric": "angular"}), (path, {"limit": 40}), (tmp_path / "short.fdx", {}),
        ]  # fmt: skip
        for tem in (
            *(Tem(Embedding.load(p, **other), nominal, gamma=3.0) for p, other in spaces),
            Tem(e, nominal, gamma=2.0),
            Tem(e, nominal * 1.1, gamma=3.0),
            Tem(e, nominal, gamma=3.0).with_epsilon(2.5),
        ):
            assert tem.guarantee.certificate is None and tem.epsilon == tem.nominal
            assert loss_of(tem) <= tem.epsilon + 1e-9
        assert Tem(e, nominal, gamma=3.0).build_lists(9).guarantee.certificate is not None
        assert pickle.loads(pickle.dumps(Tem(e, nominal, gamma=3.0))).epsilon <= 1.0


def test_an_unverified_graph_claims_nothing(tmp_path: Path) -> None:
    path = tmp_path / "graph.fdx"
    graph = WordGraph([(f"w{i}", f"w{i // 2}") for i in range(1, 30)])
    tem = Tem(graph, 1.0, certified=True)
    tem.save(path)
    assert Tem.load(path, tem.nominal).epsilon == tem.epsilon
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<d", tem.epsilon), struct.pack("<d", 1e-6)))
    assert Tem.load(path, tem.nominal, verify=False).epsilon == tem.nominal
    with pytest.raises(fastdx.CorruptFileError):
        Tem.load(path, tem.nominal)


class TestTexts:
    def test_a_text_is_not_compared_with_a_list_of_words(self) -> None:
        guarantee = Tem(HYPHENS, 2.0).guarantee
        with pytest.raises(fastdx.InputTypeError, match="not one of each"):
            guarantee.bound("go", ["go"])

    @given(st.lists(st.sampled_from([*HYPHENS.words, "x", "-", " ", ",", "a-b"]), max_size=12))
    def test_bound_counts_words_as_privatize_does(self, parts: list[str]) -> None:
        text = "".join(parts)
        tem = Tem(HYPHENS, 1.0, oov="mask")
        _, counts = tem.privatize_counted([text])
        assert len(tem.tokenize(text)) == counts["words"]
        if not counts["unknown"]:
            assert tem.guarantee.price(text) == counts["words"]
            assert len(fastdx.tokenize(text, HYPHENS)) == counts["words"]

    def test_tokens_are_to_privatize_tokens_what_words_are_to_privatize(self) -> None:
        cased = Embedding(["Paris", "london", "e-mail", "c"], np.eye(4) * 100)
        tem = Tem(cased, 1e3, gamma=np.inf, oov="error")
        text = "Paris LONDON, E-Mail c++"
        tokens = tem.tokenize(text)
        assert tokens == ["Paris", "london", "e-mail", "c"] == tem.privatize_tokens(tokens)
        assert fastdx.tokenize("Paris LONDON", cased) == ["Paris", "london"]
        guarantee = Tem(cased, 3.0).guarantee
        assert guarantee.bound("Paris", "london") == guarantee.bound(["Paris"], ["london"])
        bag = BagOfWords(tem).privatize_documents(["Paris and the LONDON"])[0]
        assert bag == {"Paris": 1, "london": 1}


ON_A_LINE = Embedding(["a", "b", "c", "e-mail", "mail"], [[0.0], [1.0], [3.0], [4.0], [9.0]])
NONE = math.inf
BOUNDS: list[tuple[dict[str, Any], str]] = [
    # Two unknown words have one law; an unknown and a known word have the law's own bound, γ·ε/2.
    (
        {},
        """a b:a b:0  a, b!:b, c!:6  A e-mail:b mail:12  a b:a:inf  a b:a, b:inf  e-mail:a-mail:inf
     :a:inf  xyz:uvw:0  xyz:a:10  a:xyz:10""",
    ),
    ({"seed": 1}, "a:b:inf  A:a:0"),
    *(({"oov": oov}, "a:xyz:inf  uvw:xyz:0") for oov in ("mask", "drop", "error")),
    ({"oov": "keep"}, "uvw:xyz:inf  a uvw:a uvw:0  a uvw:b UVW:inf"),
    ({"skip": ["b"]}, "a:b:inf  b:B:inf  b a:b c:6"),
    ({"consistent": True}, "a a b:b b c:6  a a b:b c c:inf  a b:c c:inf"),
]
PRICES: list[tuple[dict[str, Any], str | list[str], float]] = [
    ({}, "a A, e-mail xyz", 8), ({}, "", 0), ({}, ["e-mail", "a b"], 4), ({"seed": 1}, "a", NONE),
    *(({"oov": oov}, *paid) for oov in ("mask", "drop", "error")
      for paid in (("a xyz", NONE), ("a b", 4))),
    ({"oov": "keep"}, "a", NONE), ({"skip": ["b"]}, "a", NONE),
    ({"consistent": True}, "a A, e-mail xyz XYZ xyzz", 8),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "cases"), BOUNDS)
def test_a_bound_is_about_the_words_that_are_found_and_follows_the_policy(
    policy: dict[str, Any], cases: str
) -> None:
    guarantee = Tem(ON_A_LINE, 2.0, gamma=10.0, **policy).guarantee
    for case in re.split(r"  |\n     ", cases):
        one, other, bound = case.split(":")
        found = guarantee.bound(one, other)
        assert found == float(bound) or 0 <= found - float(bound) < 1e-8, case
    assert 8 <= guarantee.bound(["e-mail"], ["a"]) < 8 + 1e-8 or guarantee.void
    assert guarantee.bound(["a", "b"], ["a"]) == NONE


@pytest.mark.parametrize(("policy", "text", "price"), PRICES)
def test_a_price_counts_words_or_distinct_words(
    policy: dict[str, Any], text: str | list[str], price: float
) -> None:
    assert Tem(ON_A_LINE, 2.0, **policy).guarantee.price(text) == price


class TestLedger:
    def test_budgets_of_any_size_and_none(self, tmp_path: Path) -> None:
        for budget in (0, 0.25, 1):
            ledger = Ledger(tmp_path / str(budget), budget)
            assert ledger.budget == ledger.remaining("a") == budget
        ledger = Ledger(tmp_path / "l", 1.0)
        ledger.charge("a", 0.75)
        ledger.charge("a", 0.25)  # all of it
        assert ledger.remaining("a") == 0.0
        refused((BudgetExceededError, "", lambda: ledger.charge("a", 1e-6)))
        # A file whose budget was taken out has none.
        with sqlite3.connect(tmp_path / "l") as db:
            db.execute("DELETE FROM terms")
        assert ledger.budget == 0.0 and ledger.remaining("b") == 0.0
        refused((BudgetExceededError, "", lambda: ledger.charge("b", 0.5)))

    def test_a_release_without_a_bound_has_no_price(self, tmp_path: Path) -> None:
        ledger, noise = Ledger(tmp_path / "l", 100.0), MultivariateLaplace(HYPHENS, 1.0)
        assert noise.guarantee.price("go xyz") == math.inf
        with pytest.raises(fastdx.ParameterError, match="no price"):
            ledger.privatize(noise, "go xyz", account="a")
        assert ledger.entries() == []

    def test_the_budget_is_kept_in_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "l"
        first = Ledger(path, 10.0)
        first.charge("a", 6.0)
        refused(
            (fastdx.ParameterError, r"at most the file's, 10.*raise_budget",
             lambda: Ledger(path, 20.0)),
            (BudgetExceededError, "", lambda: first.charge("a", 5.0)),
        )  # fmt: skip
        assert Ledger(path, 20.0, raise_budget=True).charge("a", 5.0) == 9.0
        # A smaller one holds for all who have the file open.
        assert Ledger(path, 11.0).remaining("a") == 0.0 and first.budget == 11.0
        refused((BudgetExceededError, "", lambda: first.charge("a", 1.0)))

    def test_an_account_has_one_name(self, tmp_path: Path) -> None:
        ledger = Ledger(tmp_path / "l", 10.0)
        ledger.charge("caf\u00e9", 6.0)
        assert ledger.spent("cafe\u0301") == 6.0 == ledger.entries("cafe\u0301")[0].amount
        with pytest.raises(BudgetExceededError):
            ledger.charge("cafe\u0301", 6.0)

    @pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
    def test_only_its_owner_reads_it(self, tmp_path: Path) -> None:
        path = tmp_path / "l"
        before = os.umask(0)
        try:
            ledger = Ledger(path, 10.0)
            with sqlite3.connect(path) as db:
                ledger.charge("a", 1.0)
                modes = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.iterdir()}
            db.close()
        finally:
            os.umask(before)
        assert modes and set(modes.values()) == {0o600}, modes
        path.chmod(0o644)
        with pytest.raises(fastdx.FileError, match="others can read this ledger"):
            Ledger(path, 10.0)

    def test_a_text_without_words_is_released_raw(self, tmp_path: Path) -> None:
        ledger = Ledger(tmp_path / "l", 10.0)
        tem = Tem(HYPHENS, 1.0)
        with pytest.raises(fastdx.ParameterError, match="no word"):
            ledger.privatize(tem, "?! ...", account="a")
        assert ledger.privatize(tem, "", account="a") == ""
        free = Ledger(tmp_path / "l", 10.0, allow_wordless=True)
        assert free.privatize(tem, "?! ...", account="a") == "?! ..."


class TestSeeds:
    @KINDS
    def test_a_seeded_mechanism_says_so(self, kind: type[Mechanism]) -> None:
        seeded = made(kind, space(kind, [[0.0, 0.1], [0.5, 0.2], [0.3, -0.4]]), 2.0, seed=1)
        for m in (seeded, seeded.with_epsilon(seeded.epsilon + 1)):
            guarantee, bags = m.guarantee, BagOfWords(m)
            assert guarantee.bound("w0", "w1") == math.inf == bags.bound(["w0"], ["w1"])
            assert guarantee.slack == math.inf == guarantee.price("w0")
            for shown in (repr(guarantee), str(guarantee)):
                assert "NOTHING IS PROTECTED" in shown and "SEEDED" in shown
            assert "NOTHING IS PROTECTED" in str(bags.guarantee_for(3))

    def test_quiet_hides_no_warning(self, tmp_path: Path, command: Command) -> None:
        skip = tmp_path / "skip"
        skip.write_text("tea")
        base = ("privatize", "--epsilon", "3", "-q")
        assert "SEEDED" in command(*base, "--seed", "1", stdin="tea").err
        assert "RELEASED AS THEY ARE" in command(*base, "--oov", "keep", stdin="tea zyxw").err
        assert "RELEASED AS THEY ARE" in command(*base, "--skip", skip, stdin="tea").err
        told = command(*base, "--format", "csv", "--column", "t", stdin="id,t\n1,tea\n").err
        assert "released as they were: id" in told
        assert command(*base, stdin="tea").err == ""


class TestSentence:
    def test_it_prints_the_price_of_the_vocabulary_bit(self) -> None:
        for epsilon in (1.0, 3.0, 30.0):
            tem = Tem(epsilon=epsilon)
            bit = tem.guarantee.bound(["coffee"], ["zyxw"])
            across = 2 * tem.space.distances(tem.space.words[0]).max()
            most = min(math.log(0.999 * 19_999 / 0.001), epsilon / 2 * across)
            assert bit == pytest.approx(most, abs=1e-6)
            assert f"at most exp({math.ceil(1000 * bit) / 1000:.3f})" in str(tem.guarantee)
        assert "at most exp(" not in str(Tem(HYPHENS, 1.0, oov="mask").guarantee).split("Why")[1]

    def test_the_vocabulary_bit_is_what_the_laws_say(self) -> None:
        n = len(HYPHENS)
        for tem in (Tem(HYPHENS, 2.0, gamma=1.5), Tem(HYPHENS, 2.0, gamma=math.inf),
                    Tem(HYPHENS, 2.0, gamma=math.inf, language="rank")):  # fmt: skip
            unknown = np.full(n, 1 / n) if tem.base is None else tem.base / tem.base.sum()
            apart = np.abs(np.log(law_of(tem) / unknown)).max()
            assert apart <= allowed(tem.guarantee, "go", "zyxw") + 1e-9

    def test_a_bag_prints_the_guarantee_of_bags(self) -> None:
        said = str(BagOfWords(Tem(HYPHENS, 1.0)).guarantee)
        assert "Between any two bags" in said
        assert "1·N·E(b,b')" in said and "Tem protects" not in said
        bit = Tem(HYPHENS, 1.0).guarantee.bound(["go"], ["zyxw"])
        assert f"at most exp({up(bit, 5)})" in said
        bags = BagOfWords(Tem(clustered(), 1.0, certified=True))
        assert "Certified" in str(bags.guarantee) and "exp(" in str(bags.guarantee_for(4))


class TestSlack:
    def test_bound_and_slack_hold_for_the_distances_printed(self) -> None:
        border = Embedding(POINCARE.words, POINCARE.vectors * 1.0099, metric="poincare")
        graph = WordGraph([("a", "b"), ("b", "c"), ("c", "d")], [1e-20, 1.0, 1e4])
        for words, epsilon in product((clustered(30), border, graph), (1e-3, 1.0, 50.0)):
            assert_exact_bound(Tem(words, epsilon, gamma=np.inf))

    def test_the_bound_covers_the_true_distance(self) -> None:
        from fractions import Fraction

        rng = np.random.default_rng(5)
        e = Embedding(["a", "b"], rng.normal(size=(2, 300)) * 1e6)
        a, b = (e.vectors[i].tolist() for i in (0, 1))
        squared = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a, b, strict=True))
        for mechanism in (Tem(e, 1.0), MultivariateLaplace(e, 1.0)):
            bound = mechanism.guarantee.bound("a", "b")
            assert Fraction(bound) ** 2 >= squared and bound < e.distance("a", "b") * (1 + 1e-9)


class TestForgery:
    """Files sealed with right checksums whose lists or certificates are false."""

    @staticmethod
    def reseal(path: Path, change: object) -> None:
        """Change sections of a file of ours and make its checksums right again."""
        xxhash = pytest.importorskip("xxhash")
        data = bytearray(path.read_bytes())
        (count,) = struct.unpack_from("<I", data, 12)
        for i in range(count):
            at = 32 + 32 * i
            kind, _, offset, length, _ = struct.unpack_from("<IIQQQ", data, at)
            change(kind, memoryview(data)[offset : offset + length])  # type: ignore[operator]
            padded = data[offset : offset + -(-length // 64) * 64]
            struct.pack_into("<Q", data, at + 24, xxhash.xxh3_64_intdigest(bytes(padded)))
        first = struct.unpack_from("<Q", data, 32 + 8)[0]
        seal = xxhash.xxh3_64_intdigest(bytes(data[:24] + data[32:first]))
        struct.pack_into("<Q", data, 24, seal)
        path.write_bytes(data)

    def test_forged_lists_are_found_by_computing_them(self, tmp_path: Path) -> None:
        path = tmp_path / "lists.fdx"
        Tem(clustered(), 1.0).build_lists(10).save(path)
        assert run("index", "check", path).returncode == 0

        def forge(kind: int, section: memoryview) -> None:
            if kind == 9:
                # The first word's nearest neighbours all at distance 0: their ids have six bits.
                entries = np.frombuffer(section, np.uint64)
                entries[:10] = np.sort(entries[:10] & 63)

        self.reseal(path, forge)
        Tem.load(path, 1.0)  # the checksums are right
        fails("list of word 0", "index", "check", path)

    def test_a_forged_certificate_is_found_by_certifying(self, tmp_path: Path) -> None:
        path = tmp_path / "certified.fdx"
        tem = Tem(clustered(), 1.0, certified=True)
        tem.save(path)
        assert "1 certificates computed again" in run("index", "check", path).stdout

        def forge(kind: int, section: memoryview) -> None:
            if kind == 17:
                section[16:24] = struct.pack("<d", 0.0)

        self.reseal(path, forge)
        assert Tem.load(path, tem.nominal).epsilon == 0.0
        fails("certificate claims ε = 0", "index", "check", path)


PROCESSES, CHARGES = 6, 100


def longest_wait(path: Path) -> float:
    """The longest wait for a charge, as a part of the time that all charges take together."""
    start, total, longest = time.perf_counter(), Counter[str](), 0.0
    each = [(f"a{i % 3}", 1.0, "") for i in range(CHARGES)]
    for process in begun(path, 1e6, [each] * PROCESSES):
        found, _, slowest = charged(process)
        total.update(found)
        longest = max(longest, slowest)
    elapsed = time.perf_counter() - start
    assert total.total() == PROCESSES * CHARGES and set(total) == {"a0", "a1", "a2"}
    assert {a: Ledger(path).spent(a) for a in total} == total
    return longest / elapsed


def test_nobody_waits_much_longer_than_the_others(tmp_path: Path) -> None:
    """With SQLite's own waits the last one comes after half of the time that all take together."""
    # A busy machine may hold up one process by itself, but not again and again.
    assert any(longest_wait(tmp_path / f"ledger{i}") < 0.25 for i in range(4))


def test_a_file_that_is_kept_for_too_long_is_said_and_nothing_is_charged(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(path, 10.0, timeout=0.2)
    random.seed(5)
    state = random.getstate()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(fastdx.FileError, match=r"other processes kept the ledger for 0\.2 s"):
            ledger.charge("ann", 1.0)
        # A budget that stands in the file is not written again: whoever opens does not wait.
        assert Ledger(path, 10.0, timeout=0.0).spent("ann") == 0.0
        assert Ledger(path, timeout=0.0).remaining("ann") == 10.0
        with pytest.raises(fastdx.FileError, match="kept the ledger"):
            Ledger(path, 9.0, timeout=0.0)
        other.execute("ROLLBACK")
    assert ledger.charge("ann", 1.0) == 9.0
    assert random.getstate() == state
