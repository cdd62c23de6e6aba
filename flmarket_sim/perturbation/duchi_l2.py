"""The mechanism of Duchi, Jordan and Wainwright (2018) for the L2 ball: a random half of a sphere.

A gradient g with |g| <= C is rounded at random to C g/|g| or its opposite, so that the mean is g.
The release is a uniform point of a sphere, on the rounded gradient's side with chance
exp(e) / (exp(e) + 1). PrivUnit with the cap of half the sphere is the same on unit vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.perturbation.domains import Domain, in_domain, norms
from flmarket_sim.perturbation.perturbation import checked_losses, variance_from
from flmarket_sim.perturbation.sphere_caps import cap_mean
from flmarket_sim.perturbation.worst_pair import WorstPair, axis_pair

Floats = NDArray[np.float64]
NUMBERS = 2**20  # in memory at once


class DuchiL2:
    """A uniform point of a sphere, more often on the gradient's side of it (Duchi et al. 2018)."""

    name = "duchi-l2"
    domain: Domain = "l2"

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
        uniform = rng.random((2, len(gradients)))
        agrees = uniform[1] < 1.0 / (1.0 + np.exp(-losses))
        return self.on_side(gradients, losses, uniform[0], agrees, rng, clip)

    def on_side(
        self,
        gradients: Floats,
        losses: Floats,
        uniform: Floats,
        agrees: NDArray[np.bool_],
        rng: np.random.Generator,
        clip: float,
    ) -> Floats:
        """Points of the sphere: on the rounded gradient's side where `agrees`, else opposite.

        A point and its opposite are drawn without the gradient. The gradient only decides which of
        the two leaves, and whatever it decides, `agrees` turns round with its own chance.
        """
        count, dimension = gradients.shape
        length = norms(gradients, "l2")
        scale = sphere_radius(losses, dimension, clip)
        along = uniform < 0.5 + 0.5 * length / clip  # rounded to the gradient's own direction
        released = np.empty(gradients.shape)
        step = max(1, NUMBERS // dimension)
        for begin in range(0, count, step):
            rows = slice(begin, begin + step)
            points = rng.standard_normal(gradients[rows].shape)
            points *= (scale[rows] / norms(points, "l2"))[:, None]
            axis = np.where(length[rows, None] > 0, gradients[rows], np.eye(1, dimension))
            above = np.einsum("ij,ij->i", points, axis) >= 0
            points[above != (along == agrees)[rows]] *= -1.0
            released[rows] = points
        return released

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        """The square of the sphere's radius, less |g|^2: largest for a gradient of zeros."""
        loss = np.asarray(privacy_loss, np.float64)
        return variance_from(loss, sphere_radius(loss[loss > 0], dimension, clip) ** 2)

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """The gradient's side of the sphere has the chances exp(e) / (exp(e) + 1) and the rest."""
        return axis_pair(dimension, clip, 0.0)


def sphere_radius(privacy_loss: Floats, dimension: int, clip: float) -> Floats:
    """The radius with which the mean of a release is the gradient: C coth(e / 2) / E|<V, u>|."""
    half = 0.5 if dimension == 1 else cap_mean(0.0, dimension)
    return np.asarray(clip / (2.0 * half * np.tanh(0.5 * privacy_loss)))
