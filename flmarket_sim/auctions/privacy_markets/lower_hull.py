"""The lower convex hull of points in a row: the choices that some price makes the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def hull_slopes(x: Floats, y: Floats) -> Floats:
    """(..., P) slopes of the edges of the lower convex hull that end at the points 1 to P.

    x (P + 1,) rises strictly, y is (..., P + 1). Slopes rise from corner to corner. A point that is
    no corner has the slope infinity, and so has every point that is infinitely high. The hull goes
    from the first point; of points on one edge only the last is a corner.
    """
    rows = y.reshape(-1, y.shape[-1])
    slope = np.full((len(rows), len(x) - 1), np.inf)
    at, every, place = np.zeros(len(rows), np.int64), np.arange(len(rows)), np.arange(len(x))
    open_rows = every
    while len(open_rows):
        here = at[open_rows]
        ahead = (place > here[:, None]) & np.isfinite(rows[open_rows])
        run = np.where(ahead, x - x[here][:, None], 1.0)
        rise = np.where(ahead, rows[open_rows], 0.0) - rows[open_rows, here][:, None]
        steep = np.where(ahead, rise / run, np.inf)
        following = steep.shape[1] - 1 - steep[:, ::-1].argmin(axis=1)
        least = steep[np.arange(len(here)), following]
        goes_on = np.isfinite(least)
        open_rows, following = open_rows[goes_on], following[goes_on]
        slope[open_rows, following - 1] = least[goes_on]
        at[open_rows] = following
        open_rows = open_rows[following < len(x) - 1]
    return slope.reshape(*y.shape[:-1], len(x) - 1)
