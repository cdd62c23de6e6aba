"""Tables and figures inside a notebook, in the package's style.

Figures need IPython, which the extra `notebooks` installs.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import FlmarketError
from flmarket_sim.report import figures
from flmarket_sim.studies.study import Plot
from flmarket_sim.tables.result_table import ResultTable
from flmarket_sim.tables.table_text import as_html, as_text

TABLES = (pa.Table, ResultTable)
Rows = Any  # an Arrow table, or dictionaries


class NotebookTable:
    """A table for people: text in a terminal, HTML in a notebook. Cells are never markup."""

    def __init__(self, rows: Rows, columns: Sequence[str] = ()) -> None:
        self.rows = [dict(row) for row in (rows.to_pylist() if isinstance(rows, TABLES) else rows)]
        self.columns = columns

    def __repr__(self) -> str:
        return as_text(self.rows, self.columns)

    def _repr_html_(self) -> str:
        return as_html(self.rows, self.columns)


def table(rows: Rows, columns: Sequence[str] = ()) -> NotebookTable:
    """Rows (dictionaries or an Arrow table) as a table of all columns, or of the named `columns`.

    Numbers have three significant digits. A column with `_low` and `_high` beside it becomes one
    cell with its interval.
    """
    return NotebookTable(rows, columns)


@contextmanager
def axes(description: str, size: tuple[float, float] = (6.5, 4.2)) -> Iterator[Any]:
    """An axis to draw on; the figure appears under the cell.

    Where a notebook has no pictures, the description takes the figure's place.
    """
    with _displayed(description) as path, figures.axes(path, size) as axis:
        yield axis


def draw(rows: list[dict[str, Any]], plot: Plot, description: str) -> None:
    """Rows as lines with bands or groups of bars, as a study draws them."""
    with _displayed(description) as path:
        figures.draw(rows, plot, path)


@contextmanager
def _displayed(description: str) -> Iterator[Path]:
    """A temporary file for a figure, which is then displayed."""
    try:
        from IPython.display import display
    except ImportError:
        raise FlmarketError(
            "figures in a notebook need IPython: install the extra `notebooks`"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.png"
        yield path
        content = {"image/png": _small(path), "text/plain": description}
        display(content, raw=True)  # type: ignore[no-untyped-call]


def _small(path: Path) -> bytes:
    """A figure with at most 128 colours, since notebooks are kept under version control."""
    from PIL import Image

    target = io.BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
            target, "png", optimize=True
        )
    return target.getvalue()
