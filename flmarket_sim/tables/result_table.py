"""An Arrow table with a repr for people, which goes to pandas, to polars and to files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import FlmarketError
from flmarket_sim.tables.cells import Row
from flmarket_sim.tables.table_files import write_table
from flmarket_sim.tables.table_text import as_html, as_text

ROWS_SHOWN = 20
LONGEST_CELL = 40  # characters


class ResultTable:
    """An Arrow table that prints its first rows. Every method of `pyarrow.Table` works on it.

    `arrow` is the table itself. Libraries that read Arrow data (pandas, polars, DuckDB) take this
    object as it is.
    """

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    @classmethod
    def of(cls, rows: Sequence[Row]) -> ResultTable:
        """The table of rows with the same keys."""
        return cls(pa.Table.from_pylist([dict(row) for row in rows]))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        rows: list[dict[str, Any]] = self.arrow.to_pylist()
        return rows

    def to_pandas(self, **options: Any) -> Any:
        """A pandas DataFrame."""
        try:
            return self.arrow.to_pandas(**options)
        except ModuleNotFoundError as error:
            raise _missing("pandas", error) from None

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        try:
            import polars
        except ModuleNotFoundError as error:
            raise _missing("polars", error) from None
        return polars.from_arrow(self.arrow)

    def save(self, path: str | os.PathLike[str], columns: Sequence[str] = ()) -> Path:
        """Writes the table, or some of its columns, as .csv, .md, .tex or .parquet."""
        return write_table(self.arrow, path, columns)

    def __getattr__(self, name: str) -> Any:
        if name == "arrow":  # not there yet while the object is unpickled
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __getitem__(self, key: int | str) -> Any:
        return self.arrow[key]

    def __len__(self) -> int:
        return len(self.arrow)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"{as_text(self._first_rows(), self.column_names)}\n{self._size()}"

    def _repr_html_(self) -> str:
        return f"{as_html(self._first_rows(), self.column_names)}\n<p>{self._size()}</p>"

    def _first_rows(self) -> list[dict[str, Any]]:
        rows = self.arrow.slice(0, ROWS_SHOWN).to_pylist()
        return [{name: _short(value) for name, value in row.items()} for row in rows]

    def _size(self) -> str:
        rest = len(self) - ROWS_SHOWN
        more = f", {rest:,} of them not shown" if rest > 0 else ""
        return f"{len(self):,} rows{more}"


def _short(value: Any) -> Any:
    """Lists and long texts are cut."""
    if not isinstance(value, list | str | bytes):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 3]}..."


def _missing(library: str, error: ModuleNotFoundError) -> Exception:
    """The error for people, if it is this library that is missing."""
    if error.name != library:
        return error
    return FlmarketError(f"to_{library} needs {library}: pip install {library}")
