"""Figures of `scale`: time, memory and bytes side by side, both axes logarithmic."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.ticker import NullFormatter

from benchmarks.scale_axes import Axis
from flmarket_sim.report.figures import COLOURS, MARKERS

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PANELS = (
    ("seconds", "processor time [s]", 1.0),
    ("memory", "memory above start [MB]", 1e6),
    ("bytes", "log on disk [MB]", 1e6),
)


def draw(axis: Axis, medians: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    panels = [
        panel
        for panel in PANELS
        if any(row.get(panel[0], 0) > 0 for rows in medians.values() for row in rows.values())
    ]
    figure, places = plt.subplots(
        1, len(panels), figsize=(3.7 * len(panels), 3.6), layout="constrained"
    )
    for place, (key, label, unit) in zip(places, panels, strict=True):
        for number, side in enumerate(axis.sides):
            points = [
                (size, row[key] / unit)
                for size, row in sorted(medians[side.name].items())
                if row.get(key, 0) > 0
            ]
            if points:
                x, y = zip(*points, strict=True)
                dashed = (
                    "--"
                    if side.name.startswith(("the authors", "before", "no learning, before"))
                    else "-"
                )
                style = {
                    "marker": MARKERS[number],
                    "color": COLOURS[number],
                    "linestyle": dashed,
                    "markersize": 4,
                }
                place.plot(x, y, label=side.name, **style)
        place.set(xscale="log", yscale="log", xlabel=axis.label, ylabel=label)
        low, high = place.get_ylim()
        if high < 100 * low:  # small changes shall look small
            middle = (low * high) ** 0.5
            place.set_ylim(middle / 10, middle * 10)
        place.yaxis.set_minor_formatter(NullFormatter())
        place.grid(alpha=0.3, which="major", linewidth=0.5)
        place.set_axisbelow(True)
        place.spines[["top", "right"]].set_visible(False)
    handles, labels = places[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=len(labels),
        fontsize="small",
        frameon=False,
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)
