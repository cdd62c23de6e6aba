"""A few rows as text with aligned columns, or as an HTML table. Names are never markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def as_text(rows: Sequence[Row], columns: Sequence[str] = ()) -> str:
    """Columns under their heads, numbers to the right."""
    heads, cells = _cells(rows, columns)
    lines = [heads, *cells]
    widths = [max(len(line[j]) for line in lines) for j in range(len(heads))]
    right = [all(_is_number(line[j]) for line in cells) for j in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def as_html(rows: Sequence[Row], columns: Sequence[str] = ()) -> str:
    """A bare HTML table."""
    heads, cells = _cells(rows, columns)
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>\n"
        for line in cells
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def _cells(rows: Sequence[Row], columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    names = list(columns) or list(rows[0] if rows else [])
    ends = {f"{name}{end}" for name in names for end in ("_low", "_high")}
    shown = [name for name in names if name not in ends]
    return [name.replace("_", " ") for name in shown], [
        [_text(row, name) for name in shown] for row in rows
    ]


def _text(row: Row, name: str) -> str:
    """A value; with its interval where columns NAME_low and NAME_high are beside it."""
    value, low, high = row[name], row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None or low != low:
        return _number(value)
    return f"{_number(value)} [{_number(low)}, {_number(high)}]"


def _number(value: Any) -> str:
    """Three significant digits; nothing for a missing value."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, bool) or not isinstance(value, float):
        return (
            f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        )
    value = value + 0.0 if value else 0.0  # -0.0 is shown as 0
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("-")[:1].isdigit()
