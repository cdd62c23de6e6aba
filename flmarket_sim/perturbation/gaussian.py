"""Gaussian noise on gradients clipped in L2: another promise, (e, delta) instead of e.

Two gradients of L2 norm at most C differ by at most 2 C. Normal noise of standard deviation s on
every coordinate is (e, delta)-private exactly if, with r = s / (2 C) (Balle and Wang 2018),

    Phi(1 / (2 r) - e r) - exp(e) Phi(-1 / (2 r) - e r) <= delta.

The left side falls in r, so that the least r is found by halving.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.domains import Domain, in_domain
from flmarket_sim.perturbation.perturbation import checked_losses
from flmarket_sim.perturbation.worst_pair import WorstPair, axis_pair

Floats = NDArray[np.float64]
HALVINGS = 200


class Gaussian:
    """Gaussian noise of the least sufficient size. It promises (e, delta), which is weaker than e.

    With a chance of up to delta a release may reveal more than e allows. The ledger adds up delta
    beside e.
    """

    name = "gaussian"
    domain: Domain = "l2"

    def __init__(self, delta: float = 1e-5) -> None:
        if not 0 < delta < 0.5:
            raise InputError(f"delta must lie between 0 and 0.5 (got {delta:g})")
        self.delta = delta

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
        noise = rng.standard_normal(gradients.shape)
        return np.asarray(gradients + noise * self.noise_scale(losses, clip)[:, None])

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        return np.asarray(dimension * self.noise_scale(privacy_loss, clip) ** 2)

    def noise_scale(self, privacy_loss: ArrayLike, clip: float = 1.0) -> Floats:
        """The standard deviation of the noise of one coordinate; infinite at a loss of 0."""
        different, place = np.unique(np.asarray(privacy_loss, np.float64), return_inverse=True)
        scales = [
            2.0 * clip * least_ratio(one, self.delta) if one > 0 else np.inf
            for one in different.tolist()
        ]
        return np.asarray(np.array(scales)[place.reshape(np.shape(privacy_loss))])

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """Two gradients 2 C apart. Which event shows most depends on the number of releases."""
        return axis_pair(dimension, clip, None, gaussian=True)


def delta_of_ratio(ratio: float, privacy_loss: float) -> float:
    """The delta that noise of `ratio` = s / (2 C) has at a privacy loss."""
    from scipy.special import log_ndtr, ndtr

    near, far = 0.5 / ratio, privacy_loss * ratio
    return float(ndtr(near - far) - np.exp(privacy_loss + log_ndtr(-near - far)))


@lru_cache(maxsize=2**13)  # some MB in a process that does many runs
def least_ratio(privacy_loss: float, delta: float) -> float:
    """The least s / (2 C) that is (e, delta)-private."""
    low, high = 0.0, 1.0
    while delta_of_ratio(high, privacy_loss) > delta:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if delta_of_ratio(middle, privacy_loss) > delta:
            low = middle
        else:
            high = middle
    return high
