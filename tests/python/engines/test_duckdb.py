"""DuckDB's function against the real thing."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'fastdx[duckdb]'")

import duckdb

import fastdx
from fastdx.duckdb import register
from swapped import SECRET, TEXTS, WANTED


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
    connection.execute("CREATE TABLE kept AS SELECT private(repeat('coffee ', 30)) AS text")
    kept = "SELECT text FROM kept"
    assert connection.execute(kept).fetchall() == connection.execute(kept).fetchall()


def test_more_rows_than_a_vector(
    connection: duckdb.DuckDBPyConnection, swap: dict[str, Any]
) -> None:
    register(connection, "swap", **swap)
    query = """SELECT count(*) FROM range(100000) t(i)
        WHERE swap(if(i % 3 = 0, NULL, if(i % 3 = 1, 'tea', 'king')))
        IS DISTINCT FROM if(i % 3 = 0, NULL, if(i % 3 = 1, 'coffee', 'queen'))"""
    assert connection.execute(query).fetchone() == (0,)


def test_failures_show_no_text(connection: duckdb.DuckDBPyConnection, swap: dict[str, Any]) -> None:
    register(connection, "strict", **{**swap, "oov": "error"})
    with pytest.raises(duckdb.Error, match="not in the vocabulary") as info:
        connection.execute("CREATE TABLE out AS SELECT strict(?)", [f"tea {SECRET}"])
    assert SECRET not in str(info.value)
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM out")
    with pytest.raises(fastdx.ParameterError, match="epsilon"):
        register(connection, "bad", epsilon=0.0)
