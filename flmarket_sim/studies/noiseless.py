"""A release without any noise, for the ceiling that studies compare with. It promises nothing.

The market around it stays: bidders of the round, money, aggregation. `learning.noiseless_training`
has the ceiling of every run, which has no market either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.perturbation.domains import Domain, in_domain

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-12  # a variance that aggregation rules can divide by


class Noiseless:
    """No privacy at all: the gradient itself, in the domain of another perturbation.

    Its promise is (e, 1), which holds for everything. Studies use it to show how good a model would
    be without noise.
    """

    name = "noiseless"
    domain: Domain = "l2"
    delta = 1.0

    def __init__(self, domain: Domain = "l2") -> None:
        self.domain = domain

    def prepare(self, gradients: Floats, clip: float = 1.0) -> Floats:
        return in_domain(gradients, self.domain, clip)

    def release(
        self,
        gradients: Floats,
        privacy_loss: ArrayLike,
        rng: np.random.Generator,
        clip: float = 1.0,
    ) -> Floats:
        return gradients.copy()

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        loss = np.asarray(privacy_loss, np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(NEGLIGIBLE * clip**2 / np.square(loss))
