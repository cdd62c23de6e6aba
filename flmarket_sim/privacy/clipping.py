"""L1 clipping of whole gradients (paper, equation 1; THEORY section 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MARGIN = 1.0 - 1e-9  # rounding must never leave a norm above the threshold


def clip_l1(gradients: Floats, clip: float) -> tuple[Floats, Floats]:
    """Gradients (n, D) with L1 norms of at most `clip`, all parameters jointly, and the norms (n,) before."""
    gradients = np.asarray(gradients, np.float64)
    norms = np.abs(gradients).sum(axis=1)
    limit = clip * MARGIN
    factor = np.where(norms > limit, limit / np.maximum(norms, limit), 1.0)
    return gradients * factor[:, None], norms
