"""What an aggregation rule is to everybody else: `weights(privacy_loss, data_size, clip) -> (K, n)`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import ContractError, InputError

Floats = NDArray[np.float64]


class AggregationRule(Protocol):
    """Weights that sum to one over owners with a positive privacy loss and are 0 elsewhere.

    Where nobody sells there is nothing to aggregate: such rows get the data shares (paper, Algorithm 2) and an
    infinite error bound.
    """

    name: str

    def weights(self, privacy_loss: ArrayLike, data_size: ArrayLike, clip: float = 1.0) -> Floats: ...


def check_inputs(privacy_loss: ArrayLike, data_size: ArrayLike, clip: float) -> tuple[Floats, Floats]:
    """Both as float64 (K, n); wrong shapes, signs and numbers are refused by name."""
    loss, size = np.asarray(privacy_loss, np.float64), np.asarray(data_size, np.float64)
    if loss.ndim != 2 or loss.shape != size.shape or loss.shape[1] == 0:
        raise InputError(f"privacy_loss and data_size must share a shape (K, n), got {loss.shape} and {size.shape}")
    if not (np.isfinite(loss) & (loss >= 0)).all():
        raise InputError("privacy_loss must be finite and at least 0")
    if not (np.isfinite(size) & (size > 0)).all():
        raise InputError("data_size must be finite and positive")
    if not (np.isfinite(clip) and clip > 0):
        raise InputError(f"clip must be finite and positive, got {clip}")
    return loss, size


def check_weights(name: str, weights: Any, privacy_loss: Floats) -> Floats:
    """Refuses weights that break the contract: shape, sign, a weight on somebody who sells nothing, a sum other than one."""
    found = np.asarray(weights)
    if found.shape != privacy_loss.shape or found.dtype != np.float64:
        raise ContractError(
            f"aggregation rule {name!r}: weights must be float64 of shape {privacy_loss.shape}, got {found.dtype} {found.shape}"
        )
    if not (np.isfinite(found) & (found >= 0)).all():
        raise ContractError(f"aggregation rule {name!r}: weights must be finite and at least 0, got {found.tolist()}")
    if (np.abs(found.sum(axis=1) - 1.0) > 1e-6).any():
        raise ContractError(f"aggregation rule {name!r}: weights must sum to 1, got {found.sum(axis=1).tolist()}")
    if (found[(privacy_loss == 0) & (privacy_loss > 0).any(axis=1, keepdims=True)] != 0).any():
        raise ContractError(f"aggregation rule {name!r} puts a weight on an owner who sells nothing")
    return found


def data_shares(data_size: Floats) -> Floats:
    """W_i = d_i / sum(d), (K, n)."""
    return np.asarray(data_size / data_size.sum(axis=1, keepdims=True))


def normalised(scores: Floats, data_size: Floats) -> Floats:
    """Scores (K, n) to weights; rows of zeros become data shares."""
    total = scores.sum(axis=1, keepdims=True)
    empty = total <= 0
    return np.where(empty, data_shares(data_size), scores / np.where(empty, 1.0, total))
