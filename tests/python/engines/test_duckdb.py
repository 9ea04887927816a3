"""DuckDB's function against the real thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'fastdx[duckdb]'")

import duckdb

from fastdx.engines.duckdb import register
from helpers.swapped import SECRET, TEXTS, WANTED


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


def test_one_query_draws_a_row_twice_only_where_it_names_it_twice(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    register(connection, "private", epsilon=1.0)
    text = "repeat('coffee tea ', 10)"
    plain = f"SELECT i AS id, private({text}) AS t FROM range(5000) r(i)"
    # Filters, sorts and aliases do not draw again what they look at.
    for query, wanted in [
        ("SELECT count(*) FROM (SELECT t, t AS u FROM p) WHERE t <> u", 0),
        ("SELECT count(*) FROM (SELECT t FROM p WHERE t LIKE '%a%') WHERE t NOT LIKE '%a%'", 0),
        ("SELECT count(*) FROM p a JOIN p b USING (id) WHERE a.t <> b.t", 0),
    ]:
        found = connection.execute(f"WITH p AS MATERIALIZED ({plain}) {query}").fetchone()
        assert found == (wanted,)
        found = connection.execute(query.replace(" p", f" ({plain})")).fetchone()
        assert found == (5000 if "JOIN" in query else wanted,)


def test_more_rows_than_a_vector(
    connection: duckdb.DuckDBPyConnection, swap: dict[str, Any]
) -> None:
    register(connection, "swap", **swap)
    query = """SELECT count(*) FROM range(100000) t(i)
        WHERE swap(if(i % 3 = 0, NULL, if(i % 3 = 1, 'tea', 'king')))
        IS DISTINCT FROM if(i % 3 = 0, NULL, if(i % 3 = 1, 'coffee', 'queen'))"""
    assert connection.execute(query).fetchone() == (0,)


def test_failures_show_no_text_and_leave_no_table(
    connection: duckdb.DuckDBPyConnection, swap: dict[str, Any]
) -> None:
    register(connection, "strict", **{**swap, "oov": "error"})
    with pytest.raises(duckdb.Error, match="not in the vocabulary") as info:
        connection.execute("CREATE TABLE out AS SELECT strict(?)", [f"tea {SECRET}"])
    assert SECRET not in str(info.value)
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM out")
