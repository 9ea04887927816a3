"""DuckDB: a function for SQL, over Arrow (extra ``fastdx[duckdb]``)."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from fastdx._engines.recipe import Recipe, no_text

if TYPE_CHECKING:
    import duckdb

__all__ = ["register"]


def register(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    *,
    epsilon: float | None = None,
    index: str | PathLike[str] | None = None,
    returns: str = "VARCHAR",
    mechanism: str = "tem",
    **parameters: Any,
) -> duckdb.DuckDBPyConnection:
    """Register a function for SQL that replaces the words of its argument.

    DuckDB takes it as one with side effects, so every row of every call that a query writes down is
    a draw of its own, and a query or view that runs again draws again, and spends ε again: so does
    a view that one query names twice. ``CREATE TABLE … AS SELECT`` once, then read the table.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection; `duckdb` itself for the default one.
    name : str
        What SQL calls it.
    epsilon : float, optional
        ε per unit of distance. Without it, ``Tem.recommended()``.
    index : str or os.PathLike, optional
        A file that ``Tem.save`` or ``fastdx index build`` wrote; the built-in words if left out.
    returns : str, optional
        What it takes and gives: ``'VARCHAR'`` (default) or ``'VARCHAR[]'``.
    mechanism : str, optional
        A name in `fastdx.mechanisms.MECHANISMS`.
    **parameters
        The mechanism's other parameters.

    Returns
    -------
    duckdb.DuckDBPyConnection
        The connection.

    Raises
    ------
    ParameterError
        A parameter outside its domain.
    MissingFileError, CorruptFileError
        The index.

    Examples
    --------
    >>> import duckdb
    >>> from fastdx.duckdb import register
    >>> connection = register(duckdb.connect(), "private")
    >>> connection.execute("SELECT private('A cup of tea, please.')").fetchone()[0].count(",")
    1
    """
    made = Recipe.of(epsilon, mechanism, index, **parameters).mechanism()

    def private(column: Any) -> Any:
        with no_text():
            return made.privatize(column)

    return connection.create_function(
        name, private, [returns], returns, type="arrow", null_handling="special", side_effects=True
    )
