"""The variance of a market as searches and trainings need it: quickly, at millions of losses.

The variance V(e) of a perturbation can take a microsecond and more for each loss, and searches also
need its elasticity k(e) = -d log V / d log e, which is 2 for V ~ 1 / e^2. So V is computed once, at
points that grow by a constant factor, and is straight between them in logarithms. For a power of e
that is exact. The paper's V = 8 L^2 / e^2 keeps its formula and has no table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA, MarketError
from flmarket_sim.errors import InputError

Floats = NDArray[np.float64]
POINTS = 4096
REACH = 1e-6  # the least loss of a table over the largest
MOST = 460.0  # the largest logarithm of V: aggregation rules take variances up to 1e200


@dataclass(frozen=True)
class NoiseCurve:
    """V of one market between two losses; all methods take losses of any shape.

    error         the market's error
    log_loss      (P,) logarithms of the losses of the table; None for the paper's formula
    log_variance  (P,) logarithms of V there, which never rise
    elasticity_at (P,) k there
    """

    error: MarketError
    log_loss: Floats | None = None
    log_variance: Floats | None = None
    elasticity_at: Floats | None = None

    @classmethod
    def of(
        cls, error: MarketError, largest: float, least: float | None = None, points: int = POINTS
    ) -> NoiseCurve:
        """The curve for losses from `least` (by default a millionth of the largest) to `largest`.

        V that is not positive, finite and falling is refused.
        """
        if error.kind == "coordinate":
            return cls(error)
        log_loss = np.linspace(np.log(least or REACH * largest), np.log(largest), points)
        loss = np.exp(log_loss)
        variance = np.asarray(error.variance(loss), np.float64)
        if not (np.isfinite(variance) & (variance > 0)).all():
            wrong = int(np.argmin(np.isfinite(variance) & (variance > 0)))
            raise InputError(
                "the variance of a market's error must be positive and finite at every positive "
                f"privacy loss; at {loss[wrong]:g} it is {variance[wrong]}"
            )
        log_variance = np.log(variance)
        if (np.diff(log_variance) > 1e-6).any():
            wrong = int(np.argmax(np.diff(log_variance)))
            raise InputError(
                "the variance of a market's error must fall as the privacy loss rises; at "
                f"{loss[wrong]:g} it is {variance[wrong]:g} and at {loss[wrong + 1]:g} it is "
                f"{variance[wrong + 1]:g}"
            )
        log_variance = np.minimum.accumulate(log_variance)
        elasticity = np.maximum(-np.gradient(log_variance, log_loss), 0.0)
        return cls(error, log_loss, log_variance, elasticity)

    @property
    def tabulated(self) -> bool:
        return self.log_loss is not None

    @property
    def radius(self) -> float:
        return self.error.radius

    @property
    def slack(self) -> float:
        """How far V of the table may be off, relatively: four times the largest distance between
        V and the table halfway between points."""
        if self.log_loss is None or self.log_variance is None:
            return 0.0
        halfway = np.exp(0.5 * (self.log_loss[1:] + self.log_loss[:-1])[::16])
        truth = np.asarray(self.error.variance(halfway))
        return 4.0 * float(np.abs(self.variance_at(halfway) / truth - 1.0).max()) + 1e-12

    def variance(self, loss: Floats) -> Floats | None:
        """V as aggregation rules take it: infinite at 0; None stands for the paper's formula."""
        if self.log_loss is None:
            return None
        sells = loss > 0
        return np.where(sells, self.variance_at(np.where(sells, loss, 1.0)), np.inf)

    def variance_at(self, loss: Floats) -> Floats:
        """V at positive losses; below the table it goes on with the elasticity at its end."""
        if self.log_loss is None or self.log_variance is None or self.elasticity_at is None:
            return np.asarray(COORDINATE_KAPPA * (self.radius / loss) ** 2)
        log = np.log(loss)
        below = np.maximum(self.log_loss[0] - log, 0.0) * self.elasticity_at[0]
        log_variance = np.interp(log, self.log_loss, self.log_variance) + below
        return np.asarray(np.exp(np.minimum(log_variance, MOST)))

    def elasticity(self, loss: Floats) -> Floats | float:
        """k at positive losses."""
        if self.log_loss is None or self.elasticity_at is None:
            return 2.0
        return np.asarray(np.interp(np.log(loss), self.log_loss, self.elasticity_at))

    def noise_slopes(self, weights: Floats, loss: Floats) -> Floats:
        """l^2 V(e) k(e) at positive losses, up to a factor that all owners of a market share."""
        if self.log_loss is None:
            return np.asarray((weights / loss) ** 2)
        return np.asarray(weights**2 * self.variance_at(loss) * self.elasticity(loss))

    def unit_noise(self, weights: Floats, loss: Floats) -> Floats:
        """l^2 V(e) / C^2 at positive losses."""
        if self.log_loss is None:
            return np.asarray(COORDINATE_KAPPA * (weights / loss) ** 2)
        return np.asarray(weights**2 * self.variance_at(loss) / self.radius**2)

    def precision_above(self, loss: Floats) -> Floats:
        """C^2 / V at the next point of the table, which is not below C^2 / V(e); 0 at loss 0.

        The table has to reach the largest loss. With the paper's formula it is e^2 / 8 itself.
        """
        if self.log_loss is None or self.log_variance is None:
            return np.asarray(loss**2 / COORDINATE_KAPPA)
        place = np.searchsorted(self.log_loss, np.log(np.maximum(loss, 1e-300)) - 1e-12)
        place = np.minimum(place, len(self.log_loss) - 1)
        precision = self.radius**2 * np.exp(-self.log_variance)
        return np.where(loss > 0, precision[place], 0.0)
