"""The ledger beside other processes: who waits, for how long, and what is said then."""

import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import fastdx
from fastdx.budget import Ledger
from helpers.charging import begun, charged

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
