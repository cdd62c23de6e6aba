"""The aggregate of many gradients that lie in memory one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
COLUMNS = (
    2**15
)  # parameters at once; a multiple of what BLAS does at once, so that cutting moves no sum


def weighted_sum(weights: Floats, gradients: Sequence[Floats]) -> Floats:
    """(D,) sum of weights (k,) times gradients, each (D,): `weights @ np.stack(gradients)` without a second copy of them all."""
    dimension = len(gradients[0])
    combined = np.empty(dimension)
    begins = [
        *range(0, max(dimension - COLUMNS, 0) + 1, COLUMNS)
    ]  # the last part is the longest: BLAS sums few columns otherwise
    for begin, end in zip(begins, [*begins[1:], dimension], strict=True):
        part = slice(begin, end)
        combined[part] = weights @ np.stack([gradient[part] for gradient in gradients])
    return combined
