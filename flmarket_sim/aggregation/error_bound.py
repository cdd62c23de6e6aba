"""The error bound of a global gradient (paper, section IV; docs/theory.md, sections 1 and 7).

    ERR(l) = sum_i l_i^2 V_i + C^2 (sum_i |l_i - W_i|)^2,   W_i = d_i / sum(d)

The first term is the variance of the weighted sum, the second its largest squared bias. With the
total variance V_i of owner i's released vector this bounds the squared error of the gradient. The
paper takes the variance of one coordinate, V_i = 8 L^2 / e_i^2. Owners who sell nothing have
l_i = 0 and their W_i still counts in the bias. If nobody sells, the gradient is invalid and the
bound infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA, MarketError
from flmarket_sim.aggregation.rule import (
    LARGEST,
    Floats,
    check_inputs,
    check_variance,
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
    weights: ArrayLike,
    privacy_loss: ArrayLike,
    data_size: ArrayLike,
    clip: float = 1.0,
    variance: ArrayLike | None = None,
) -> ErrorBound:
    """The bound and its two parts; `variance` (K, n) and `clip` as in the contract of a rule."""
    loss, size = check_inputs(privacy_loss, data_size, clip)
    weight = numbers("weights", weights)
    if weight.shape != loss.shape:
        raise InputError(
            f"weights must have the shape of privacy_loss {loss.shape}, got {weight.shape}"
        )
    refuse("weights", weight, np.abs(weight) <= LARGEST, f"be finite, and at most {LARGEST:g}")
    with np.errstate(divide="ignore", invalid="ignore"):
        if variance is None:
            noise = COORDINATE_KAPPA * clip**2 * (weight / loss) ** 2
        else:
            noise = weight**2 * check_variance(variance, loss, clip)
        noise = np.where(weight == 0, 0.0, noise)
    total = noise.sum(axis=1)
    total[(loss == 0).all(axis=1)] = np.inf
    squared_bias = (clip * np.abs(weight - data_shares(size)).sum(axis=1)) ** 2
    return ErrorBound(total + squared_bias, total, squared_bias)


def error_bound(
    weights: ArrayLike,
    privacy_loss: ArrayLike,
    data_size: ArrayLike,
    clip: float = 1.0,
    variance: ArrayLike | None = None,
) -> Floats:
    """(K,) the bound; infinite where nobody sells or a weight sits on an owner who sold nothing."""
    return error_bound_parts(weights, privacy_loss, data_size, clip, variance).total


def error_bound_in(
    error: MarketError, weights: ArrayLike, privacy_loss: Floats, data_size: ArrayLike
) -> ErrorBound:
    """The bound and its parts in a market that counts this error."""
    variance = None if error.kind == "coordinate" else error.variance(privacy_loss)
    return error_bound_parts(weights, privacy_loss, data_size, error.radius, variance)
