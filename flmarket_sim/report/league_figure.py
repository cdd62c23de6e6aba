"""The figure of the league: a line for each mechanism, with its numbers and their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.report.figure_style import SCREEN
from flmarket_sim.report.figures import COLOURS

PANELS = {  # column: label, where a mechanism would like to be, whether the scale is logarithmic
    "over_floor": ("error / floor", 1.0, True),
    "gain": ("gain of lies / cost", 0.0, False),
    "rest_error": ("error at rest / truthful", 1.0, True),
    "accuracy": ("accuracy of the model", None, False),
}
LINE = 0.24  # inches that a mechanism takes


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws the rows over the whole card in their order; the suffix of `path` is the format.

    A line parts those with a place from those without. Numbers far beyond those of most mechanisms
    stand at the edge, with an arrow.
    """
    import matplotlib

    from flmarket_sim.report.shown_figure import ShownFigure

    placed = sum(row.get("place") is not None for row in rows)
    settings: Any = SCREEN.settings()
    with matplotlib.rc_context(settings):
        figure = ShownFigure(figsize=(10.0, 1.0 + LINE * len(rows)), layout="constrained")
        axes = figure.subplots(1, len(PANELS), sharey=True, squeeze=False)[0]
        for axis, (column, (label, ideal, logarithmic)), colour in zip(
            axes, PANELS.items(), COLOURS, strict=False
        ):
            _panel(axis, rows, column, colour, logarithmic)
            axis.set_xlabel(label)
            if ideal is not None:
                axis.axvline(ideal, color="black", linewidth=0.8, linestyle="--")
            if 0 < placed < len(rows):
                axis.axhline(placed - 0.5, color="black", linewidth=0.8)
        axes[0].set_yticks(range(len(rows)), [_label(row) for row in rows])
        axes[0].set_ylim(len(rows) - 0.5, -0.5)
        try:
            figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            raise InputError(f"the figure cannot be written to {path}: {error}") from None


def _label(row: dict[str, Any]) -> str:
    place = row.get("place")
    return str(row["auction"]) if place is None else f"{row['auction']}  {place}"


def _panel(axis: Any, rows: list[dict[str, Any]], column: str, colour: str, log: bool) -> None:
    values, lows, highs = (
        np.array([_number(row.get(f"{column}{end}")) for row in rows])
        for end in ("", "_low", "_high")
    )
    from matplotlib.ticker import LogLocator, NullFormatter

    edge = _edge(values, highs)
    places, inside = np.arange(len(rows)), values <= edge
    lows, highs = (
        np.where(np.isfinite(lows), lows, values),
        np.where(np.isfinite(highs), highs, values),
    )
    axis.hlines(
        places[inside], lows[inside], np.minimum(highs, edge)[inside], colour, linewidth=1.4
    )
    axis.plot(values[inside], places[inside], "o", color=colour, markersize=4)
    beyond = values > edge
    axis.plot(np.full(beyond.sum(), edge), places[beyond], ">", color=colour, markersize=6)
    for place in places[beyond]:
        axis.annotate(
            f"{values[place]:.3g} ", (edge, place), ha="right", va="center", fontsize="small"
        )
    if log:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(0.5, 1.0, 2.0, 4.0)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.3, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)


def _edge(values: Any, highs: Any) -> float:
    """Where a panel ends: at the largest number, or at three times the upper quartile."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 1.0
    largest = max(finite.max(), highs[np.isfinite(highs)].max(initial=-np.inf))
    return float(min(largest, max(3.0 * np.percentile(finite, 75), 1e-9)))


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
