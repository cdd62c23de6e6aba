"""2-means of numbers on a line, exactly: the best of all splits of the sorted numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def lower_cluster(values: Floats) -> NDArray[np.bool_]:
    """(n,) which of n >= 2 numbers are in the lower of the two clusters of least squares.

    On a line both clusters of an optimum are intervals, so n - 1 splits are compared by prefix
    sums. Equal numbers stay together. If all are equal there is no lower cluster.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order] - values.mean()
    count = np.arange(1, len(values))
    sums = np.cumsum(ordered)
    between = sums[:-1] ** 2 / count + (sums[-1] - sums[:-1]) ** 2 / (len(values) - count)
    between[np.diff(ordered) <= 0] = -1.0
    result = np.zeros(len(values), bool)
    if between.max() > 0:
        result[order[: int(between.argmax()) + 1]] = True
    return result
