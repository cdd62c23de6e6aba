"""The figure of a study as charts of a page: drawn for the page's theme, from rows and plot."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from flmarket_sim.report.figures import REFERENCES
from flmarket_sim.report.html.generic import is_number
from flmarket_sim.report.html.parts import Chart, Series
from flmarket_sim.studies.study import Plot

Row = dict[str, Any]


def read_plot(facts: Row, rows: list[Row]) -> Plot | None:
    """The plot that study.json holds, if it fits the rows; studies of older versions have none."""
    stored = facts.get("plot")
    if not isinstance(stored, dict) or not rows:
        return None
    known = {field.name for field in fields(Plot)}
    try:
        plot = Plot(**{name: value for name, value in stored.items() if name in known})
    except TypeError:
        return None
    columns = [plot.x, plot.y, plot.group, *([plot.panel] if plot.panel else [])]
    fits = all(isinstance(name, str) and all(name in row for row in rows) for name in columns)
    return plot if fits else None


def charts(rows: list[Row], plot: Plot, note: str) -> list[Chart]:
    """A chart for each panel of the plot."""
    panels = list(dict.fromkeys(row[plot.panel] for row in rows)) if plot.panel else [None]
    drawn = []
    for place, panel in enumerate(panels):
        in_panel = [row for row in rows if plot.panel is None or row[plot.panel] == panel]
        lines = [
            _series(str(group), [row for row in in_panel if row[plot.group] == group], plot)
            for group in dict.fromkeys(row[plot.group] for row in in_panel)
        ]
        drawn.append(
            Chart(
                f"study-{plot.y}" + (f"-{place}" if len(panels) > 1 else ""),
                str(plot.y_label) if panel is None else str(panel),
                "bars" if plot.bars else "line",
                str(plot.x_label),
                str(plot.y_label),
                [series for series in lines if series.points],
                note,
                x_log=bool(plot.log_x),
                y_log=bool(plot.log),
                level=plot.level if is_number(plot.level) else None,
                y_top=plot.top if is_number(plot.top) else None,
            )
        )
    return [chart for chart in drawn if chart.series]


def _series(name: str, rows: list[Row], plot: Plot) -> Series:
    points = [
        [
            str(row[plot.x]) if plot.bars else row[plot.x],
            row[plot.y],
            row.get(f"{plot.y}_low"),
            row.get(f"{plot.y}_high"),
        ]
        for row in rows
        if is_number(row[plot.y]) and (plot.bars or is_number(row[plot.x]))
    ]
    if not plot.bars:
        points.sort(key=lambda point: point[0])
    return Series(name, points, reference=name in REFERENCES)
