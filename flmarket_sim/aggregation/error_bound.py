"""The error bound of a global gradient (paper, section IV; docs/theory.md, section 1).

    ERR(l) = sum_i l_i^2 s_i + L^2 (sum_i |l_i - W_i|)^2,   s_i = 8 L^2 / e_i^2,   W_i = d_i /
    sum(d)

The first term is the variance of one coordinate, the second the largest squared bias. Owners who
sell nothing have l_i = 0 and their W_i still counts in the bias. If nobody sells, the gradient is
invalid and the bound infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flmarket_sim.aggregation.rule import (
    LARGEST,
    Floats,
    check_inputs,
    data_shares,
    numbers,
    refuse,
)
from flmarket_sim.errors import InputError


@dataclass(frozen=True)
class ErrorBound:
    """total = variance + squared_bias, each (K,); infinite where nobody sells."""

    total: Floats
    variance: Floats
    squared_bias: Floats


def error_bound_parts(
    weights: ArrayLike, privacy_loss: ArrayLike, data_size: ArrayLike, clip: float = 1.0
) -> ErrorBound:
    loss, size = check_inputs(privacy_loss, data_size, clip)
    weight = numbers("weights", weights)
    if weight.shape != loss.shape:
        raise InputError(
            f"weights must have the shape of privacy_loss {loss.shape}, got {weight.shape}"
        )
    refuse("weights", weight, np.abs(weight) <= LARGEST, f"be finite, and at most {LARGEST:g}")
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = np.where(weight == 0, 0.0, 8.0 * clip**2 * (weight / loss) ** 2)
    variance = noise.sum(axis=1)
    variance[(loss == 0).all(axis=1)] = np.inf
    squared_bias = (clip * np.abs(weight - data_shares(size)).sum(axis=1)) ** 2
    return ErrorBound(variance + squared_bias, variance, squared_bias)


def error_bound(
    weights: ArrayLike, privacy_loss: ArrayLike, data_size: ArrayLike, clip: float = 1.0
) -> Floats:
    """(K,) the bound; infinite where nobody sells or a weight sits on an owner who sold nothing."""
    return error_bound_parts(weights, privacy_loss, data_size, clip).total
