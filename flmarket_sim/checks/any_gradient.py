"""From the law of one gradient's release to every gradient's, by the promise of privacy alone.

An e-private release has, for gradients g and 0 and any event S,

    P_g(S) <= exp(e) P_0(S) + delta,   P_g(S) <= 1 - exp(-e) (1 - P_0(S) - delta),

the second from the first for the complement with g and 0 in each other's place. So a chance under
a gradient of zeros bounds the chance under every gradient, whatever it has to do with others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def under_any_gradient(chance: ArrayLike, privacy_loss: ArrayLike, delta: float = 0.0) -> Floats:
    """The largest chance of an event that has `chance` under one gradient (shapes broadcast)."""
    one, loss = np.asarray(chance, np.float64), np.asarray(privacy_loss, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        few = np.where(one > 0, one * np.exp(loss), 0.0) + delta
    many = 1.0 - np.exp(-loss) * np.maximum(1.0 - one - delta, 0.0)
    return np.asarray(np.clip(np.minimum(few, many), 0.0, 1.0))
