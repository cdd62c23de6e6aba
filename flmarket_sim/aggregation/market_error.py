"""The error that a market counts: what noise costs at a privacy loss, and how large a bias can be.

    ERR(l) = sum_i l_i^2 V(e_i) + C^2 (sum_i |l_i - W_i|)^2

V(e) is the variance of what an owner releases at privacy loss e, and C the largest L2 norm of a
gradient that is sold. With the total variance of the released vector, ERR bounds the squared error
of the delivered gradient ("vector"). The paper takes the variance of one coordinate, 8 L^2 / e^2,
and its ERR bounds nothing when gradients have many coordinates ("coordinate"; docs/theory.md,
section 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
COORDINATE_KAPPA = 8.0  # the paper's: two times (2 L)^2 for L = 1


@dataclass(frozen=True)
class MarketError:
    """The error of one market.

    kind       "vector" or "coordinate": what a bound with this variance is a bound of
    variance   V: privacy losses of any shape to variances of the same shape, infinite at 0;
               it falls as the loss rises
    radius     C: the largest L2 norm of a gradient that is sold
    """

    kind: str
    variance: Callable[[Floats], Floats]
    radius: float = 1.0

    @property
    def kappa(self) -> float:
        """V(1) / C^2: one number for the regime. It is 8 in the paper's reading, and grows in
        proportion to the number of coordinates for a whole vector."""
        return float(self.variance(np.ones(1))[0]) / self.radius**2


def coordinate_error(clip: float = 1.0) -> MarketError:
    """The paper's reading: V = 8 L^2 / e^2, the Laplace variance of one coordinate."""
    return MarketError("coordinate", _inverse_square(COORDINATE_KAPPA * clip**2), clip)


def error_of_kappa(kappa: float, clip: float = 1.0) -> MarketError:
    """A market whose variance is kappa C^2 / e^2."""
    return MarketError("vector", _inverse_square(kappa * clip**2), clip)


def _inverse_square(factor: float) -> Callable[[Floats], Floats]:
    def variance(privacy_loss: ArrayLike) -> Floats:
        loss = np.asarray(privacy_loss, np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(factor / np.square(loss))

    return variance
