"""The Laplace mechanism of the paper: L1 clipping, independent noise on every coordinate.

Two gradients of L1 norm at most L differ by at most 2 L in L1, so Laplace noise of scale 2 L / e on
every coordinate is e-locally private. This noise consists of ordinary floating-point numbers: it is
good for a simulation, and not fit for a release (Mironov 2012; privacy/hardened.py is).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.perturbation.domains import Domain, in_domain
from flmarket_sim.perturbation.perturbation import checked_losses
from flmarket_sim.perturbation.worst_pair import WorstPair, axis_pair

Floats = NDArray[np.float64]


class Laplace:
    """The paper's: the gradient is clipped in L1 and gets Laplace noise on every coordinate."""

    name = "laplace"
    domain: Domain = "l1"

    def prepare(self, gradients: Floats, clip: float = 1.0) -> Floats:
        return in_domain(gradients, self.domain, clip)

    def release(
        self,
        gradients: Floats,
        privacy_loss: ArrayLike,
        rng: np.random.Generator,
        clip: float = 1.0,
    ) -> Floats:
        losses = checked_losses(privacy_loss, len(gradients), self.name)
        return perturb(gradients, rng.laplace(size=gradients.shape), losses, clip)

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        """D times 2 (2 L / e)^2, whatever the gradient is."""
        return np.asarray(2.0 * dimension * self.noise_scale(privacy_loss, clip) ** 2)

    def noise_scale(self, privacy_loss: ArrayLike, clip: float = 1.0) -> Floats:
        """Scale of the noise of one coordinate: 2 L / e."""
        with np.errstate(divide="ignore"):
            return np.asarray(2.0 * clip / np.asarray(privacy_loss, np.float64))

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """A first coordinate of at least L has the chances 1/2 and exp(-e) / 2."""
        return axis_pair(dimension, clip, clip)


def perturb(clipped: Floats, unit: Floats, privacy_loss: Floats, clip: float) -> Floats:
    """Clipped gradients (n, D) plus standard Laplace noise (n, D) times the scale of each loss."""
    return np.asarray(clipped + unit * (2.0 * clip / privacy_loss)[:, None])
