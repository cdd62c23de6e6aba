"""A table read from a run, with a repr for people."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog.table_text import as_html, as_text

ROWS_SHOWN = 20
LONGEST_CELL = 40  # characters


class ResultTable:
    """An Arrow table that prints its first rows. Every method of `pyarrow.Table` works on it.

    `arrow` is the table itself. Libraries that read Arrow data (pandas, polars, DuckDB) take this
    object as it is.
    """

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    def to_pandas(self, **options: Any) -> Any:
        """A pandas DataFrame."""
        try:
            return self.arrow.to_pandas(**options)
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise FlmarketError("to_pandas needs pandas: pip install pandas") from None

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
