"""The weighted sum of many gradients, without a second copy of them: the rule by default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.robust.robust_rule import Breakdown

Floats = NDArray[np.float64]
# Parameters in one part: a multiple of BLAS's own blocks, so that no sum depends on the cut.
COLUMNS = 2**15


class WeightedSum:
    """The plain weighted sum: every message counts by its weight, whatever is in it."""

    name = "weighted-sum"

    def combine(
        self, messages: Floats | Sequence[Floats], weights: Floats, variance: Floats
    ) -> Floats:
        return weighted_sum(weights, messages)

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown:
        return Breakdown(weights, 0.0)


def weighted_sum(weights: Floats, gradients: Floats | Sequence[Floats]) -> Floats:
    """(D,) `weights @ np.stack(gradients)` for weights (k,) and k gradients (D,), part by part."""
    combined = np.empty(len(gradients[0]))
    for part in column_parts(len(combined)):
        combined[part] = weights @ np.stack([gradient[part] for gradient in gradients])
    return combined


def column_parts(dimension: int) -> Iterator[slice]:
    """Slices of the coordinates, so that no copy of all messages is needed at once."""
    # The last part is the longest: BLAS sums a few columns in another order.
    begins = [*range(0, max(dimension - COLUMNS, 0) + 1, COLUMNS)]
    for begin, end in zip(begins, [*begins[1:], dimension], strict=True):
        yield slice(begin, end)
