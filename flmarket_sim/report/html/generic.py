"""Charts of rows of which only the columns are known: studies, and sweeps over any axes."""

from __future__ import annotations

from typing import Any

from flmarket_sim.report.html.parts import Chart, Series

Row = dict[str, Any]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def chart(
    id: str, title: str, y: str, rows: list[Row], axes: list[str], note: str = ""
) -> Chart | None:
    """A chart of column `y` (with its interval, if it has one) over one of the axes.

    The horizontal axis is the numeric axis with most values, and the chart has lines. Without a
    numeric axis it is the first axis, and the chart has bars. Every combination of the other axes
    is a series. The result is None if no row has a number.
    """
    rows = [row for row in rows if is_number(row.get(y)) and row[y] == row[y]]
    if not rows:
        return None
    distinct = {axis: list(dict.fromkeys(row[axis] for row in rows)) for axis in axes}
    numeric = [
        axis
        for axis in axes
        if len(distinct[axis]) > 1 and all(is_number(value) for value in distinct[axis])
    ]
    if numeric:
        x = max(numeric, key=lambda axis: len(distinct[axis]))
    else:
        x = next((axis for axis in axes if len(distinct[axis]) > 1), axes[0] if axes else "")
    series_axes = [axis for axis in axes if axis != x and len(distinct[axis]) > 1]
    lines: dict[str, list[list[Any]]] = {}
    for row in rows:
        name = ", ".join(str(row[axis]) for axis in series_axes) or y.replace("_", " ")
        low, high = row.get(f"{y}_low"), row.get(f"{y}_high")
        place = row.get(x, "all")
        lines.setdefault(name, []).append([place if numeric else str(place), row[y], low, high])
    series = [
        Series(name, sorted(points, key=lambda point: point[0]) if numeric else points)
        for name, points in lines.items()
    ]
    return Chart(
        id,
        title,
        "line" if numeric else "bars",
        x.replace("_", " "),
        y.replace("_", " "),
        series,
        note,
    )
