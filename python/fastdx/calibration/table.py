"""A small table of numbers that needs no data-frame library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdx._shared.checks import one_of


class Table:
    """Named columns of equal length, stored in one numpy structured array.

    ``table["N_w"]`` is a column, ``table.array`` the whole array, and ``list(table)`` the rows as
    dicts, which libraries of frames take: ``pandas.DataFrame(list(table))``.
    """

    def __init__(self, **columns: Any) -> None:
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        kinds = [(n, object if a.dtype.kind == "U" else a.dtype) for n, a in arrays.items()]
        self.array: NDArray[Any] = np.empty(len(next(iter(arrays.values()))), dtype=kinds)
        for name, column in arrays.items():
            self.array[name] = column

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Make the table of rows, at least one, that have the same names."""
        return cls(**{name: [row[name] for row in rows] for name in rows[0]})

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.array.dtype.names or ())

    def __getitem__(self, column: str) -> NDArray[Any]:
        one_of("column", column, self.columns)
        return self.array[column]

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield rows as dicts."""
        for row in self.array:
            yield dict(zip(self.columns, row.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def __str__(self) -> str:
        rows = [list(self.columns)]
        for row in self.array[:20]:
            rows.append([f"{x:.4g}" if isinstance(x, float) else str(x) for x in row.tolist()])
        widths = [max(len(r[i]) for r in rows) for i in range(len(self.columns))]
        lines = ["  ".join(x.rjust(w) for x, w in zip(r, widths, strict=True)) for r in rows]
        more = len(self) - 20
        return "\n".join(lines + ([f"… and {more} more"] if more > 0 else []))
