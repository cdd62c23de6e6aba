"""Corners of a lower convex hull are the points that some price makes the only best choice."""

import numpy as np
import pytest

from flmarket_sim.auctions.privacy_markets.lower_hull import hull_slopes


def corners(x, y):
    """The corners after the first point, and slopes to them, by trying all pairs of points."""
    found, last = {}, 0
    while last < len(x) - 1:
        slopes = {j: (y[j] - y[last]) / (x[j] - x[last]) for j in range(last + 1, len(x))}
        least = min(slopes.values())
        if not np.isfinite(least):
            break
        last = max(j for j, slope in slopes.items() if slope == least)
        found[last] = least
    return found


def test_slopes_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    for points in (2, 3, 9):
        x = np.cumsum(rng.uniform(0.1, 1.0, points))
        y = rng.integers(0, 5, (40, 3, points)).astype(float)
        slope = hull_slopes(x, y)
        for row, column in np.ndindex(40, 3):
            found = corners(x, y[row, column])
            for j in range(1, points):
                expected = found.get(j, np.inf)
                assert slope[row, column, j - 1] == pytest.approx(expected)


def test_what_is_infinitely_high_is_no_corner():
    slope = hull_slopes(np.arange(4.0), np.array([[0.0, 1.0, np.inf, np.inf]]))
    assert slope.tolist() == [[1.0, np.inf, np.inf]]
