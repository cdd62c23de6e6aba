"""All figures have one style with colours for the colour-blind; the suffix is the format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.report.figure_style import SCREEN, FigureStyle
from flmarket_sim.studies.accuracy_references import CONSTANT, CONSTANT_GUESS, WITHOUT_NOISE
from flmarket_sim.studies.detection import BEST_TEST
from flmarket_sim.studies.study import Plot

COLOURS = (  # Okabe and Ito
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
)  # fmt: skip
FIRST_BEST = "first-best"  # the best purchase found and not a mechanism
FLOOR = "floor"  # below it no truthful mechanism can be
# What results are held against is drawn in black, without marks.
REFERENCES = {
    FIRST_BEST: "--", FLOOR: ":", BEST_TEST: "--", WITHOUT_NOISE: "-.", CONSTANT_GUESS: ":",
    CONSTANT: ":",
}  # fmt: skip
VARIANT = " (published weights)"  # drawn like the auction of the same name, but dotted
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@contextmanager
def axes(
    path: Path | None, size: tuple[float, float] = (6.5, 4.2), style: FigureStyle = SCREEN
) -> Iterator[Any]:
    """An axis to draw on. The figure is then written to `path` (.png, .svg or .pdf), if any."""
    with panels(path, 1, size, style=style) as (axis,):
        yield axis


@contextmanager
def panels(
    path: Path | None,
    count: int,
    size: tuple[float, float],
    columns: int = 2,
    style: FigureStyle = SCREEN,
) -> Iterator[list[Any]]:
    """Several axes with common scales and one legend; `size` is that of the whole figure."""
    import matplotlib

    from flmarket_sim.report.shown_figure import ShownFigure

    wide = min(count, columns)
    settings: Any = style.settings()
    with matplotlib.rc_context(settings):
        figure = ShownFigure(figsize=size, layout="constrained")
        figure.svg_text = style.svg_text
        grid = figure.subplots(-(-count // wide), wide, squeeze=False, sharex=True, sharey=True)
        drawn = list(grid.flat)
        for spare in drawn[count:]:
            spare.remove()
        yield drawn[:count]
        _finish(figure, drawn[:count], wide, style)
    if path is not None:
        try:
            figure.savefig(path, dpi=150 if style.width is None else 600)
        except (OSError, ValueError) as error:
            raise InputError(f"the figure cannot be written to {path}: {error}") from None


def _finish(figure: Any, drawn: list[Any], columns: int, style: FigureStyle) -> None:
    """Grid, legend, and the labels that the style sets."""
    labels: dict[str, Any] = {}
    for place, axis in enumerate(drawn):
        axis.grid(alpha=0.3, which="both", linewidth=0.5)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        if style.x_label is not None and place >= len(drawn) - columns:
            axis.set_xlabel(style.x_label)
        if style.y_label is not None and place % columns == 0:
            axis.set_ylabel(style.y_label)
        labels |= {
            label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
    if style.title is not None:
        figure.suptitle(style.title)
    if len(labels) > 1:
        many = len(labels) > 8 or len(drawn) > 1
        inches = figure.get_figwidth()
        letters: str | float
        wide, letters = (4 if inches > 8 else 3, "small") if many else (2, "medium")
        if style.width is not None:  # as many as fit: a letter is about half as wide as it is high
            longest = max(map(len, labels)) * 0.55 * style.letters / 72 + 0.45
            wide, letters = max(1, int(inches / longest)), style.letters - 1
        figure.legend(
            labels.values(),
            labels,
            loc=f"outside {'upper' if style.title is None else 'lower'} center",
            ncols=wide,
            fontsize=letters,
            frameon=False,
        )


def draw(
    rows: list[dict[str, Any]], plot: Plot, path: Path | None, style: FigureStyle = SCREEN
) -> Any:
    """Draws rows as lines with bands, or as groups of bars with whiskers. Returns the figure.

    Each value of the plot's panel column has a panel.
    """
    groups = list(dict.fromkeys(row[plot.group] for row in rows))
    titles: list[Any] = (
        [None] if plot.panel is None else list(dict.fromkeys(row[plot.panel] for row in rows))
    )
    many = plot.bars and len({row[plot.x] for row in rows}) > 4
    single = (8.0, 4.6) if many else (6.5, 4.4)
    usual = single if len(titles) == 1 else (9.0, 1.1 + 3.0 * -(-len(titles) // 2))
    columns = 1 if plot.bars else style.columns(2)
    if plot.bars and len(titles) > 1:
        usual = (9.0, 1.2 + 3.2 * len(titles))
    wide = min(len(titles), columns)
    size = style.size(usual, -(-len(titles) // wide), wide)
    with panels(path, len(titles), size, columns, style) as axes_drawn:
        for place, (axis, panel) in enumerate(zip(axes_drawn, titles, strict=True)):
            in_panel = [row for row in rows if plot.panel is None or row[plot.panel] == panel]
            if plot.bars:
                names = list(dict.fromkeys(row[plot.x] for row in rows))
                _bars(axis, in_panel, plot, groups, names, style)
            else:
                _lines(axis, in_panel, plot, groups, style)
            axis.set(
                xlabel=plot.x_label if place >= len(titles) - columns else "",
                ylabel=plot.y_label if place % columns == 0 else "",
                title="" if panel is None else str(panel),
            )
            if place >= len(titles) - columns:
                axis.tick_params(labelbottom=True)  # also above a place without a panel
            _scales(axis, plot, rows)
            if plot.level is not None:
                axis.axhline(plot.level, color="black", linewidth=0.8, linestyle="--")
    return axes_drawn[0].figure


def _scales(axis: Any, plot: Plot, rows: list[dict[str, Any]]) -> None:
    """Logarithmic axes where the plot has them, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if plot.log:
        axis.set_yscale("log")
        values = np.array([row[plot.y] for row in rows if row[plot.y] is not None], float)
        values = values[(values > 0) & np.isfinite(values)]  # inf: nothing was ever bought
        values = np.minimum(values, plot.top or np.inf)
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
        shown = [row[plot.y] for row in rows if row[plot.y] is not None]
        axis.set_ylim(None, min(plot.top, 1.2 * max(shown, default=plot.top)))
    if plot.log_x:
        axis.set_xscale("log")
        axis.set_xticks(sorted({row[plot.x] for row in rows}))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())


def _lines(
    axis: Any, rows: list[dict[str, Any]], plot: Plot, groups: list[Any], style: FigureStyle
) -> None:
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
        if group in REFERENCES:
            colour, marker, line = "black", "", REFERENCES[group]
        axis.plot(
            x, y, line, marker=marker, markersize=style.mark, linewidth=style.line, color=colour,
            label=style.named(group),
        )  # fmt: skip
        inside = y <= (np.inf if plot.top is None else plot.top)
        axis.fill_between(x, low, high, where=inside, color=colour, alpha=0.15, linewidth=0)


def _bars(
    axis: Any,
    rows: list[dict[str, Any]],
    plot: Plot,
    groups: list[Any],
    names: list[Any],
    style: FigureStyle,
) -> None:
    """Groups of bars with whiskers. What is no mechanism is a line across the figure."""
    barred = [group for group in groups if group not in REFERENCES]
    width = 0.8 / max(1, len(barred))
    for group in (group for group in groups if group in REFERENCES):
        level = next((row[plot.y] for row in rows if row[plot.group] == group), None)
        if level is not None:
            axis.axhline(
                level, color="black", linewidth=style.line, linestyle=REFERENCES[group],
                label=style.named(group),
            )  # fmt: skip
    for place, group in enumerate(barred):
        by_name = {row[plot.x]: row for row in rows if row[plot.group] == group}
        at = [j for j, name in enumerate(names) if name in by_name]
        _, y, low, high = (
            np.array(
                [by_name[names[j]].get(key, np.nan) if key != plot.x else np.nan for j in at], float
            )
            for key in _columns(plot)
        )
        whiskers = np.nan_to_num(np.stack([y - low, high - y]).clip(min=0))
        offset = (place - (len(barred) - 1) / 2) * width
        axis.bar(
            np.array(at) + offset, y, width, yerr=whiskers, capsize=2,
            color=COLOURS[place % len(COLOURS)], label=style.named(group),
            error_kw={"linewidth": 0.8},
        )  # fmt: skip
    crowded = len(names) > 3 or (style.width is not None and style.width < 5 and len(names) > 2)
    axis.set_xticks(
        range(len(names)),
        [style.named(name) for name in names],
        rotation=20 if crowded else 0,
        ha="right" if crowded else "center",
    )


def _columns(plot: Plot) -> tuple[str, str, str, str]:
    return plot.x, plot.y, f"{plot.y}_low", f"{plot.y}_high"
