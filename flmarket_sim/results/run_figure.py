"""`run.plot()`: the rounds of a run as a figure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_events
from flmarket_sim.eventlog.schema import RoundRecord
from flmarket_sim.report import figures
from flmarket_sim.report.figure_style import SCREEN, FigureStyle
from flmarket_sim.studies.study import Plot

LABELS = {
    "accuracy": "accuracy on test records",
    "error_bound": "error bound",
    "spent": "money paid",
    "privacy_sold": "sum of privacy losses sold",
}
FIRST = ("accuracy", "error_bound", "spent")  # the first of them that the run has is drawn
LOGARITHMIC = ("error_bound", "vector_bound", "coordinate_bound", "true_error")


def draw_run(
    run: str | os.PathLike[str],
    column: str | None = None,
    path: str | os.PathLike[str] | None = None,
    style: FigureStyle = SCREEN,
) -> Any:
    """A line for each buyer: a column of `run.rounds` over the rounds. Returns the figure."""
    rows = round_rows(run)
    plot = rounds_plot(rows, column)
    drawn = [row for row in rows if row[plot.y] is not None]
    if not drawn:
        raise InputError(f"no round of this run has a number in {plot.y!r}")
    return figures.draw(drawn, plot, None if path is None else Path(path), style)


def round_rows(run: str | os.PathLike[str], subject: str = "") -> list[dict[str, Any]]:
    """The rounds of a run; `line` names the buyer, after the subject if there is one."""
    rows = read_events(run, "round").to_pylist()
    several = len({row["buyer"] for row in rows}) > 1
    return [
        row
        | {
            "round": row["round"] + 1,
            "line": ", ".join(filter(None, [subject, row["buyer"] if several else ""]))
            or row["buyer"],
        }
        for row in rows
    ]


def rounds_plot(rows: list[dict[str, Any]], column: str | None = None) -> Plot:
    """How a column of rounds is drawn: by default accuracy, or else the error bound."""
    if not rows:
        raise InputError("this run has no finished round to draw")
    known = [name for name in RoundRecord.__dataclass_fields__ if _has_numbers(rows, name)]
    if column is None:
        column = next(name for name in FIRST if _has_numbers(rows, name))
    elif column not in known:
        raise InputError(f"rounds have no number {column!r}; there are {', '.join(known)}")
    label = LABELS.get(column, column.replace("_", " "))
    return Plot("round", column, "line", "round", label, log=column in LOGARITHMIC)


def _has_numbers(rows: list[dict[str, Any]], name: str) -> bool:
    return any(type(row.get(name)) in (int, float) for row in rows)
