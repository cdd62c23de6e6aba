"""What everybody knows about secret rates: a prior, and the virtual rates that follow from it.

In a truthful mechanism an owner of rate r is paid at least her cost plus her information rent, what
she could get by pretending to be dearer. On average over the prior this is her cost at the virtual
rate r + F(r) / f(r) (Myerson 1981; docs/second-best.md). A price of money that changes with the
rates by a factor exp(slope r) changes the second term to

    rent(r) = 1 / f(r) * integral from low to r of exp(slope (s - r)) f(s) ds
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario

Floats = NDArray[np.float64]
NODES = 48  # of the quadrature


class RatePrior(Protocol):
    """The distribution of one owner's rate; rates of different owners are independent."""

    mean: float

    def quantile(self, chance: Floats) -> Floats: ...

    def rent(self, rate: Floats, slope: Floats) -> Floats:
        """`rent(r)` of this module, elementwise; for slope 0 it is F(r) / f(r)."""
        ...


class UniformRates:
    """Rates uniform in [low, high], as in every scenario. With low = high nothing is secret."""

    def __init__(self, low: float, high: float) -> None:
        if not (np.isfinite(high) and 0 < low <= high):
            raise InputError(f"rates need 0 < low <= high, both finite; got {low:g} and {high:g}")
        self.low, self.high, self.mean = low, high, 0.5 * (low + high)

    def quantile(self, chance: Floats) -> Floats:
        return np.asarray(self.low + (self.high - self.low) * chance)

    def rent(self, rate: Floats, slope: Floats) -> Floats:
        width = np.maximum(rate - self.low, 0.0)
        product = slope * width
        small = np.abs(product) < 1e-6
        safe = np.where(small, 1.0, slope)
        return np.where(small, width * (1.0 - 0.5 * product), -np.expm1(-product) / safe)


class DistributionRates:
    """Rates of a continuous distribution of `scipy.stats` with bounded, positive support.

    The integral is computed by a Gauss-Legendre rule of 48 nodes.
    """

    def __init__(self, distribution: object) -> None:
        self.distribution = distribution
        low, high = distribution.support()  # type: ignore[attr-defined]
        if not (np.isfinite(high) and 0 < low < high):
            raise InputError(
                f"rates need a bounded positive support, got [{float(low):g}, {float(high):g}]"
            )
        self.low, self.high = float(low), float(high)
        self.mean = float(distribution.mean())  # type: ignore[attr-defined]

    def quantile(self, chance: Floats) -> Floats:
        return np.asarray(self.distribution.ppf(chance))  # type: ignore[attr-defined]

    def rent(self, rate: Floats, slope: Floats) -> Floats:
        node, weight = np.polynomial.legendre.leggauss(NODES)
        rate, slope = np.broadcast_arrays(rate, slope)
        half = 0.5 * (rate - self.low)[..., None]
        place = self.low + half * (node + 1.0)
        density = self.distribution.pdf  # type: ignore[attr-defined]
        tilted = np.exp(slope[..., None] * (place - rate[..., None])) * density(place)
        return np.asarray((half * weight * tilted).sum(axis=-1) / density(rate))


def rate_prior(scenario: Scenario) -> UniformRates:
    """The prior that a scenario states: rates uniform between two numbers."""
    return UniformRates(*scenario.owners.rate)
