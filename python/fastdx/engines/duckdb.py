"""DuckDB: an SQL function that privatises text, over Arrow (extra ``fastdx[duckdb]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastdx.engines._recipe import Recipe

if TYPE_CHECKING:
    import duckdb

__all__ = ["register"]


def register(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    *,
    returns: str = "VARCHAR",
    **parameters: Any,
) -> duckdb.DuckDBPyConnection:
    """Register an SQL function that replaces the words of its argument; return the connection.

    It is registered with side effects, so DuckDB draws afresh for every row of every call in a
    query. A query or view that runs again draws again and spends ε again. So does a view that one
    query names twice. Use ``CREATE TABLE … AS SELECT`` once, then read the table.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection; `duckdb` itself for the default connection.
    name : str
        The function's name in SQL.
    returns : str, optional
        The type of argument and result: ``'VARCHAR'`` (default) or ``'VARCHAR[]'``.
    **parameters
        The mechanism: see ``docs/engines.md``.
    """
    private = Recipe.of(**parameters).privatize
    return connection.create_function(
        name, private, [returns], returns, type="arrow", null_handling="special", side_effects=True
    )
