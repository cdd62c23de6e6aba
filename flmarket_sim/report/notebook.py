"""Tables and figures inside a notebook, in the style of all others. Needs IPython: the extra `notebooks`."""

from __future__ import annotations

import html
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

Rows = Any  # an Arrow table, or dictionaries


class Shown:
    """A table for people: text where there is only text, HTML in a notebook. Names are never markup."""

    def __init__(self, rows: Rows, columns: Sequence[str] = ()) -> None:
        plain = [dict(row) for row in (rows.to_pylist() if isinstance(rows, pa.Table) else rows)]
        self.heads, self.cells = _cells(plain, columns)

    def __repr__(self) -> str:
        """Columns under their heads, numbers to the right."""
        lines = [self.heads, *self.cells]
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.heads))]
        right = [all(_is_number(line[j]) for line in self.cells) for j in range(len(self.heads))]
        return "\n".join(
            "  ".join(
                cell.rjust(w) if r else cell.ljust(w)
                for cell, w, r in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self.heads)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>\n"
            for line in self.cells
        )
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


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


def _cells(rows: list[dict[str, Any]], columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    names = list(columns) or list(rows[0] if rows else [])
    ends = {f"{name}{end}" for name in names for end in ("_low", "_high")}
    kept = [name for name in names if name not in ends]
    lines = [[_text(row, name) for name in kept] for row in rows]
    return [name.replace("_", " ") for name in kept], lines


def _text(row: dict[str, Any], name: str) -> str:
    value, low, high = row[name], row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None or low != low:
        return _number(value)
    return f"{_number(value)} [{_number(low)}, {_number(high)}]"


def _number(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, bool) or not isinstance(value, float):
        return (
            f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        )
    value = value + 0.0 if value else 0.0  # no minus nothing
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("-")[:1].isdigit()
