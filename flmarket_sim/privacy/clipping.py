"""L1 clipping of whole gradients (paper, equation 1; docs/theory.md, section 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MARGIN = 1.0 - 1e-9  # rounding must never leave a norm above the threshold
ELEMENTS = 2**20  # numbers in memory at once


def clip_l1(gradients: Floats, clip: float, in_place: bool = False) -> tuple[Floats, Floats]:
    """Gradients (n, D) with L1 norms of at most `clip`, and the norms (n,) before clipping.

    Long rows are processed one by one, since the gradients of a round can fill most of the memory.
    """
    gradients = np.asarray(gradients, np.float64)
    count, dimension = gradients.shape
    norms = np.empty(count)
    step = max(1, ELEMENTS // max(dimension, 1))
    for begin in range(0, count, step):
        norms[begin : begin + step] = np.abs(gradients[begin : begin + step]).sum(axis=1)
    limit = clip * MARGIN
    factor = np.where(norms > limit, limit / np.maximum(norms, limit), 1.0)
    return np.multiply(gradients, factor[:, None], out=gradients if in_place else None), norms
