"""Every figure in one style: colour-blind safe, quiet, vector or PNG by the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.study.contract import Plot

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@contextmanager
def axes(path: Path | None, size: tuple[float, float] = (6.5, 4.2)) -> Iterator[Any]:
    """An axis to draw on; the figure goes to `path` (.png, .svg or .pdf), and is closed in any case."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "flmarket"  # the same figure gives the same bytes
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=size, layout="constrained")
    try:
        yield axis
        axis.grid(alpha=0.3, which="both", linewidth=0.5)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        handles, labels = axis.get_legend_handles_labels()
        if len(labels) > 1:
            many = len(labels) > 8
            columns, font = (3, "small") if many else (2, "medium")
            figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=font, frameon=False)
        if path is not None:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            try:
                figure.savefig(path, dpi=150, metadata=metadata)
            except (OSError, ValueError) as error:
                raise InputError(f"the figure cannot be written to {path}: {error}") from None
    finally:
        plt.close(figure)


def draw(rows: list[dict[str, Any]], plot: Plot, path: Path) -> None:
    """Rows as lines with bands, or as groups of bars with whiskers."""
    groups = list(dict.fromkeys(row[plot.group] for row in rows))
    many = plot.bars and len({row[plot.x] for row in rows}) > 4
    with axes(path, (8.0, 4.6) if many else (6.5, 4.4)) as axis:
        if plot.bars:
            _bars(axis, rows, plot, groups)
        else:
            _lines(axis, rows, plot, groups)
        axis.set(xlabel=plot.x_label, ylabel=plot.y_label)
        if plot.log:
            axis.set_yscale("log")
        if plot.level is not None:
            axis.axhline(plot.level, color="black", linewidth=0.8, linestyle="--")


def _lines(axis: Any, rows: list[dict[str, Any]], plot: Plot, groups: list[Any]) -> None:
    for place, group in enumerate(groups):
        mine = sorted((row for row in rows if row[plot.group] == group), key=lambda row: row[plot.x])
        x, y, low, high = (np.array([row.get(key, np.nan) for row in mine], float) for key in _columns(plot))
        colour = COLOURS[place % len(COLOURS)]
        axis.plot(x, y, marker=MARKERS[place % len(MARKERS)], markersize=4, color=colour, label=str(group))
        axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _bars(axis: Any, rows: list[dict[str, Any]], plot: Plot, groups: list[Any]) -> None:
    names = list(dict.fromkeys(row[plot.x] for row in rows))
    width = 0.8 / len(groups)
    for place, group in enumerate(groups):
        mine = {row[plot.x]: row for row in rows if row[plot.group] == group}
        at = [j for j, name in enumerate(names) if name in mine]
        _, y, low, high = (
            np.array([mine[names[j]].get(key, np.nan) if key != plot.x else np.nan for j in at], float)
            for key in _columns(plot)
        )
        whiskers = np.nan_to_num(np.stack([y - low, high - y]).clip(min=0))
        offset = (place - (len(groups) - 1) / 2) * width
        axis.bar(
            np.array(at) + offset, y, width, yerr=whiskers, capsize=2, color=COLOURS[place % len(COLOURS)], label=str(group),
            error_kw={"linewidth": 0.8},
        )  # fmt: skip
    axis.set_xticks(
        range(len(names)),
        [str(name) for name in names],
        rotation=20 if len(names) > 3 else 0,
        ha="right" if len(names) > 3 else "center",
    )


def _columns(plot: Plot) -> tuple[str, str, str, str]:
    return plot.x, plot.y, f"{plot.y}_low", f"{plot.y}_high"
