"""All figures have one style with colours for the colour-blind; the suffix is the format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.studies.study import Plot

COLOURS = (  # Okabe and Ito
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
)  # fmt: skip
FIRST_BEST = "first-best"  # the best purchase found and not a mechanism: drawn dashed
VARIANT = " (published weights)"  # drawn like the auction of the same name, but dotted
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@contextmanager
def axes(path: Path | None, size: tuple[float, float] = (6.5, 4.2)) -> Iterator[Any]:
    """An axis to draw on. The figure is written to `path` (.png, .svg or .pdf), then closed."""
    with panels(path, 1, size) as (axis,):
        yield axis


@contextmanager
def panels(
    path: Path | None, count: int, size: tuple[float, float], columns: int = 2
) -> Iterator[list[Any]]:
    """Several axes with common scales and one legend; `size` is that of the whole figure."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "flmarket"  # the same figure gives the same bytes
    import matplotlib.pyplot as plt

    wide = min(count, columns)
    figure, grid = plt.subplots(
        -(-count // wide),
        wide,
        figsize=size,
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    drawn = list(grid.flat)
    try:
        for spare in drawn[count:]:
            spare.remove()
        yield drawn[:count]
        labels: dict[str, Any] = {}
        for axis in drawn[:count]:
            axis.grid(alpha=0.3, which="both", linewidth=0.5)
            axis.set_axisbelow(True)
            axis.spines[["top", "right"]].set_visible(False)
            labels |= {
                label: handle
                for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
            }
        if len(labels) > 1:
            many = len(labels) > 8
            wide, font = (4 if size[0] > 8 else 3, "small") if many or count > 1 else (2, "medium")
            figure.legend(
                labels.values(),
                labels,
                loc="outside upper center",
                ncols=wide,
                fontsize=font,
                frameon=False,
            )
        if path is not None:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            try:
                figure.savefig(path, dpi=150, metadata=metadata)
            except (OSError, ValueError) as error:
                raise InputError(f"the figure cannot be written to {path}: {error}") from None
    finally:
        plt.close(figure)


def draw(rows: list[dict[str, Any]], plot: Plot, path: Path) -> None:
    """Draws rows as lines with bands, or as groups of bars with whiskers.

    Each value of the plot's panel column has a panel.
    """
    groups = list(dict.fromkeys(row[plot.group] for row in rows))
    titles: list[Any] = (
        [None] if plot.panel is None else list(dict.fromkeys(row[plot.panel] for row in rows))
    )
    many = plot.bars and len({row[plot.x] for row in rows}) > 4
    single = (8.0, 4.6) if many else (6.5, 4.4)
    size = single if len(titles) == 1 else (9.0, 1.1 + 3.0 * -(-len(titles) // 2))
    columns = 1 if plot.bars else 2
    if plot.bars and len(titles) > 1:
        size = (9.0, 1.2 + 3.2 * len(titles))
    with panels(path, len(titles), size, columns) as axes_drawn:
        for place, (axis, panel) in enumerate(zip(axes_drawn, titles, strict=True)):
            in_panel = [row for row in rows if plot.panel is None or row[plot.panel] == panel]
            if plot.bars:
                _bars(
                    axis, in_panel, plot, groups, list(dict.fromkeys(row[plot.x] for row in rows))
                )
            else:
                _lines(axis, in_panel, plot, groups)
            axis.set(
                xlabel=plot.x_label if place >= len(titles) - columns else "",
                ylabel=plot.y_label if place % columns == 0 else "",
                title="" if panel is None else str(panel),
            )
            _scales(axis, plot, rows)
            if plot.level is not None:
                axis.axhline(plot.level, color="black", linewidth=0.8, linestyle="--")


def _scales(axis: Any, plot: Plot, rows: list[dict[str, Any]]) -> None:
    """Logarithmic axes where the plot has them, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if plot.log:
        axis.set_yscale("log")
        values = np.array([row[plot.y] for row in rows if row[plot.y] is not None], float)
        values = np.minimum(values[values > 0], plot.top or np.inf)
        if len(values) and values.max() < 200 * values.min():
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        if len(values):
            # A band that reaches down to 0 must not stretch the axis. All panels share its top.
            highs = np.array([row.get(f"{plot.y}_high") or np.nan for row in rows], float)
            axis.set_ylim(
                0.8 * values.min(),
                1.2 * max(values.max(), highs[np.isfinite(highs)].max(initial=0.0)),
            )
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
    if plot.top is not None:
        axis.set_ylim(
            None, min(plot.top, 1.2 * max(row[plot.y] for row in rows if row[plot.y] is not None))
        )
    if plot.log_x:
        axis.set_xscale("log")
        axis.set_xticks(sorted({row[plot.x] for row in rows}))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())


def _lines(axis: Any, rows: list[dict[str, Any]], plot: Plot, groups: list[Any]) -> None:
    for place, group in enumerate(groups):
        line_rows = sorted(
            (row for row in rows if row[plot.group] == group), key=lambda row: row[plot.x]
        )
        x, y, low, high = (
            np.array([row.get(key, np.nan) for row in line_rows], float) for key in _columns(plot)
        )
        if plot.log:  # 0 has no logarithm: the line ends there, inside the figure
            y = np.where(y > 0, y, np.nan)
        colour, marker, line = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)], "-"
        if (namesake := str(group).removesuffix(VARIANT)) != group and namesake in groups:
            like = groups.index(namesake)
            colour, marker, line = COLOURS[like % len(COLOURS)], MARKERS[like % len(MARKERS)], ":"
        if group == FIRST_BEST:
            colour, marker, line = "black", "", "--"
        axis.plot(x, y, line, marker=marker, markersize=4, color=colour, label=str(group))
        inside = y <= (np.inf if plot.top is None else plot.top)
        axis.fill_between(x, low, high, where=inside, color=colour, alpha=0.15, linewidth=0)


def _bars(
    axis: Any, rows: list[dict[str, Any]], plot: Plot, groups: list[Any], names: list[Any]
) -> None:
    width = 0.8 / len(groups)
    for place, group in enumerate(groups):
        by_name = {row[plot.x]: row for row in rows if row[plot.group] == group}
        at = [j for j, name in enumerate(names) if name in by_name]
        _, y, low, high = (
            np.array(
                [by_name[names[j]].get(key, np.nan) if key != plot.x else np.nan for j in at], float
            )
            for key in _columns(plot)
        )
        whiskers = np.nan_to_num(np.stack([y - low, high - y]).clip(min=0))
        offset = (place - (len(groups) - 1) / 2) * width
        axis.bar(
            np.array(at) + offset, y, width, yerr=whiskers, capsize=2,
            color=COLOURS[place % len(COLOURS)], label=str(group), error_kw={"linewidth": 0.8},
        )  # fmt: skip
    axis.set_xticks(
        range(len(names)),
        [str(name) for name in names],
        rotation=20 if len(names) > 3 else 0,
        ha="right" if len(names) > 3 else "center",
    )


def _columns(plot: Plot) -> tuple[str, str, str, str]:
    return plot.x, plot.y, f"{plot.y}_low", f"{plot.y}_high"
