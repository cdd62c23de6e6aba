"""The weighted sum of many gradients, without a second copy of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Parameters in one part: a multiple of BLAS's own blocks, so that no sum depends on the cut.
COLUMNS = 2**15


def weighted_sum(weights: Floats, gradients: Sequence[Floats]) -> Floats:
    """(D,) `weights @ np.stack(gradients)` for weights (k,) and k gradients (D,), part by part."""
    dimension = len(gradients[0])
    combined = np.empty(dimension)
    # The last part is the longest: BLAS sums a few columns in another order.
    begins = [*range(0, max(dimension - COLUMNS, 0) + 1, COLUMNS)]
    for begin, end in zip(begins, [*begins[1:], dimension], strict=True):
        part = slice(begin, end)
        combined[part] = weights @ np.stack([gradient[part] for gradient in gradients])
    return combined
