"""Squared distances between messages, by one product of matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NEAR = 1e-6  # squared distances below this part of the squared lengths are computed one by one


def squared_distances(points: Floats) -> Floats:
    """(n, n) squared distances between points (n, D), |x|^2 + |y|^2 - 2 x y.

    That difference has no digits left where points lie close together, far from zero. Such pairs
    are computed anew from the differences of their coordinates.
    """
    lengths = np.einsum("ij,ij->i", points, points)
    both = lengths[:, None] + lengths
    squared = both - 2.0 * (points @ points.T)
    for i, j in np.argwhere(np.triu(squared <= NEAR * both, 1)):
        squared[i, j] = squared[j, i] = np.square(points[i] - points[j]).sum()
    np.fill_diagonal(squared, 0.0)
    return np.asarray(squared)
