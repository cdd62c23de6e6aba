"""Paired differences as a figure: a dot and an interval for each pair, and a line at nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.report.figure_style import SCREEN, FigureStyle
from flmarket_sim.report.figures import COLOURS, axes

MOST = 60  # rows that can be told apart on a page


def draw_differences(
    rows: Sequence[dict[str, Any]], path: Path | None, style: FigureStyle = SCREEN
) -> Any:
    """Draws a dot with its interval for each row, from top to bottom, and returns the figure.

    A row has `difference`, `difference_low`, `difference_high` and `label`. Intervals that leave
    out zero are filled dots, the others are hollow.
    """
    if not rows:
        raise InputError("a figure of differences needs at least two auctions to compare")
    if len(rows) > MOST:
        raise InputError(
            f"a figure of differences shows at most {MOST} of them, and these are {len(rows)}: "
            "name fewer budgets or auctions"
        )
    middle, low, high = (
        np.array([row[key] for row in rows], float)
        for key in ("difference", "difference_low", "difference_high")
    )
    places = np.arange(len(rows))
    told_apart = (low > 0) | (high < 0)
    usual = (6.5, 1.0 + 0.32 * len(rows))
    step = 0.32 if style.width is None else 0.024 * style.letters
    size = usual if style.width is None else (style.width, 0.6 + step * len(rows))
    with axes(path, size, style) as axis:
        axis.axvline(0.0, color="black", linewidth=0.8, linestyle="--")
        axis.hlines(places, low, high, color=COLOURS[0], linewidth=style.line)
        axis.scatter(
            middle, places, s=(1.6 * style.mark) ** 2, color=COLOURS[0], zorder=3,
            facecolors=[COLOURS[0] if apart else "white" for apart in told_apart],
        )  # fmt: skip
        axis.set_yticks(places, [style.named(row["label"]) for row in rows])
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_xlabel("difference in the same markets")
    return axis.figure
