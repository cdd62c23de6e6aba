"""What the other messages of a round point to: one direction for each owner, without her own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SAME_LOSS = 1e-9  # relative


def units(vectors: Floats) -> Floats:
    """(n, D) vectors of length 1; zeros, and vectors that are not finite, become zeros."""
    with np.errstate(all="ignore"):
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        sound = np.isfinite(length) & (length > 0)
    result = np.zeros(vectors.shape)
    result[sound] = vectors[sound] / length[sound, None]
    return result


def sums_of_others(messages: Floats, weights: Floats) -> Floats:
    """(n, D) for each owner the weighted sum of all other messages."""
    weighted = weights[:, None] * np.where(np.isfinite(messages), messages, 0.0)
    return np.asarray(weighted.sum(axis=0) - weighted)


def at_most_the_median(weights: Floats) -> Floats:
    """(n,) weights; those above the median are the median."""
    return np.minimum(weights, np.median(weights)) if len(weights) else weights


def equal_losses(privacy_loss: Floats) -> list[NDArray[np.int64]]:
    """The rows of owners who sold the same privacy loss, a group each, by rising loss."""
    order = np.argsort(privacy_loss, kind="stable")
    ordered = privacy_loss[order]
    steps = np.flatnonzero(np.diff(ordered) > SAME_LOSS * ordered[1:]) + 1
    return [np.sort(group) for group in np.split(order, steps) if len(group)]
