"""DuckDB's function against the real thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'fastdx[duckdb]'")

import duckdb

from fastdx.engines.duckdb import register
from helpers.swapped import TEXTS, WANTED


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE reviews (id INTEGER, text VARCHAR)")
    connection.executemany("INSERT INTO reviews VALUES (?, ?)", list(enumerate(TEXTS)))
    return connection


def test_columns(connection: duckdb.DuckDBPyConnection, swap: dict[str, Any]) -> None:
    register(connection, "swap", **swap)
    register(connection, "swap_lists", returns="VARCHAR[]", **swap)
    rows = connection.execute("SELECT swap(text) FROM reviews ORDER BY id").fetchall()
    assert [row[0] for row in rows] == WANTED
    lists = "SELECT swap_lists(['tea', NULL]), swap_lists([]), swap_lists(NULL)"
    assert connection.execute(lists).fetchone() == (["coffee", None], [], None)
    assert connection.execute("SELECT swap(text) FROM reviews WHERE id > 9").fetchall() == []


def test_every_row_and_call_is_a_draw(connection: duckdb.DuckDBPyConnection) -> None:
    register(connection, "private", epsilon=1.0)
    # A constant is not folded into one draw; two equal calls are two.
    rows = connection.execute("SELECT private('coffee tea coffee') FROM range(50)").fetchall()
    assert len(set(rows)) > 25
    twice = "SELECT private(t), private(t) FROM (SELECT repeat('coffee ', 30) AS t)"
    first, second = connection.execute(twice).fetchone() or ("", "")
    assert first != second


def test_equal_texts_are_drawn_apart(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Also where DuckDB or a file holds them once: a dictionary, a compressed segment."""
    register(connection, "private", epsilon=1.0)
    text = "repeat('coffee tea ', 10) AS text"
    connection.execute(f"CREATE TABLE equal AS SELECT {text} FROM range(5000)")
    connection.execute(f"COPY equal TO '{tmp_path}/equal.parquet'")
    connection.execute(f"ATTACH '{tmp_path}/equal.db' AS stored")
    connection.execute("CREATE TABLE stored.equal AS FROM equal")
    connection.execute("CHECKPOINT stored")
    for source in ("equal", f"'{tmp_path}/equal.parquet'", "stored.equal"):
        count = f"SELECT count(DISTINCT private(text)) FROM {source}"
        assert connection.execute(count).fetchone() == (5000,)
