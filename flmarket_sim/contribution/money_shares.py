"""How money is divided by contributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def positive_shares(value: Floats) -> Floats:
    """(K, n) what each owner gets of the money: her positive value, or alike if there is none."""
    positive = np.maximum(value, 0.0)
    _, size = np.frexp(positive.max(axis=1))
    positive = np.ldexp(positive, -size[:, None])
    total = positive.sum(axis=1, keepdims=True)
    some = total > 0
    return np.asarray(np.where(some, positive / np.where(some, total, 1.0), 1.0 / value.shape[1]))


def shares_of_sellers(value: Floats, rounding: float) -> Floats:
    """(n,) shares phi_i+ / sum(phi+) of the money; values within `rounding` of zero count as zero.

    Where nobody's value is positive, a share has no meaning: if all are zero, nobody can be told
    from the others and all get the same; if some are negative, nobody gets anything, and the buyer
    keeps her money.
    """
    value = np.where(np.abs(value) <= rounding, 0.0, value)
    if not (value > 0).any() and (value < 0).any():
        return np.zeros(len(value))
    return np.asarray(positive_shares(value[None])[0])
