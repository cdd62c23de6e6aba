"""Tables and figures inside a notebook, in the style of all others. Needs IPython: the extra `notebooks`."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog.result_table import ResultTable
from flmarket_sim.eventlog.table_text import as_html, as_text
from flmarket_sim.report import figures
from flmarket_sim.studies.study import Plot

TABLES = (pa.Table, ResultTable)
Rows = Any  # an Arrow table, or dictionaries


class Shown:
    """A table for people: text where there is only text, HTML in a notebook."""

    def __init__(self, rows: Rows, columns: Sequence[str] = ()) -> None:
        self.rows = [dict(row) for row in (rows.to_pylist() if isinstance(rows, TABLES) else rows)]
        self.columns = columns

    def __repr__(self) -> str:
        return as_text(self.rows, self.columns)

    def _repr_html_(self) -> str:
        return as_html(self.rows, self.columns)


def table(rows: Rows, columns: Sequence[str] = ()) -> Shown:
    """Rows (dictionaries or an Arrow table) as a table, of some `columns` only if they are named.

    A number is shown with three significant digits; a column that has `_low` and `_high` beside it is shown as one cell with its interval.
    """
    return Shown(rows, columns)


@contextmanager
def axes(description: str, size: tuple[float, float] = (6.5, 4.2)) -> Iterator[Any]:
    """An axis to draw on; the figure is shown under the cell, with the description in its place where there are no pictures."""
    with _shown(description) as path, figures.axes(path, size) as axis:
        yield axis


def draw(rows: list[dict[str, Any]], plot: Plot, description: str) -> None:
    """Rows as lines with bands or groups of bars, as a study draws them."""
    with _shown(description) as path:
        figures.draw(rows, plot, path)


@contextmanager
def _shown(description: str) -> Iterator[Path]:
    """A file for a figure, which is shown and goes."""
    try:
        from IPython.display import display
    except ImportError:
        raise FlmarketError(
            "figures in a notebook need IPython: install the extra `notebooks`"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.png"
        yield path
        display({"image/png": _small(path), "text/plain": description}, raw=True)  # type: ignore[no-untyped-call]


def _small(path: Path) -> bytes:
    """A figure with at most 128 colours: notebooks with their figures are kept under version control."""
    from PIL import Image

    target = io.BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
            target, "png", optimize=True
        )
    return target.getvalue()
