"""L1 clipping of whole gradients (paper, equation 1; docs/theory.md, section 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MARGIN = 1.0 - 1e-9  # rounding must never leave a norm above the threshold
ELEMENTS = 2**20  # numbers looked at at once


def clip_l1(gradients: Floats, clip: float, in_place: bool = False) -> tuple[Floats, Floats]:
    """Gradients (n, D) with L1 norms of at most `clip`, all parameters jointly, and the norms (n,) before.

    Row by row where rows are long: a round of gradients can be most of the memory there is.
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
