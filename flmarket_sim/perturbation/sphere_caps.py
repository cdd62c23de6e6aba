"""Caps of the unit sphere in k dimensions: their mass, their mean, and points drawn in them.

A uniform point V of the sphere has T = <V, u> along any unit vector u, with T^2 ~ Beta(1/2,
(k - 1)/2) and a random sign. For the cap {T >= gamma}, gamma >= 0:

    mass  q(gamma) = P(T >= gamma) = P(T^2 >= gamma^2) / 2
    mean  a(gamma) = E[T; T >= gamma] = c / (k - 1) (1 - gamma^2)^((k - 1)/2),
          c = Gamma(k/2) / (sqrt(pi) Gamma((k - 1)/2))

Heights are numbers or arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cap_mass(height: Any, dimension: int) -> Any:
    """q: the share of the sphere with T >= height, for heights from 0 to 1."""
    from scipy.special import betaincc

    return 0.5 * betaincc(0.5, 0.5 * (dimension - 1), height * height)


def cap_mean(height: Any, dimension: int) -> Any:
    """a: the mean of T over the cap, times its mass; at height 0 it is half the mean of |T|."""
    half = 0.5 * (dimension - 1)
    return (
        gamma_ratio(half)
        / (2.0 * half * math.sqrt(math.pi))
        * np.exp(half * np.log1p(-height * height))
    )


def gamma_ratio(z: float) -> float:
    """Gamma(z + 1/2) / Gamma(z); for large z by its series, since the two logarithms are large."""
    if z < 100.0:
        return math.exp(math.lgamma(z + 0.5) - math.lgamma(z))
    x = 1.0 / z
    series = 1.0 - x / 8.0 * (1.0 - x / 16.0 * (1.0 + 5.0 * x / 8.0 * (1.0 - 21.0 * x / 160.0)))
    return math.sqrt(z) * series


def mean_square_above(height: Any, dimension: int) -> Any:
    """E[T^2; T >= height], from parts: (q + (k - 1) height a) / k."""
    mass, mean = cap_mass(height, dimension), cap_mean(height, dimension)
    return (mass + (dimension - 1) * height * mean) / dimension


def height_of_tail(tail: Floats, dimension: int) -> Floats:
    """The t with P(T >= t) = tail, for tails from 0 to 1."""
    from scipy.special import betainccinv

    upper = np.minimum(tail, 1.0 - tail)
    squared = betainccinv(0.5, 0.5 * (dimension - 1), np.minimum(2.0 * upper, 1.0))
    return np.asarray(np.sqrt(squared) * np.where(tail <= 0.5, 1.0, -1.0))


def points_at(heights: Floats, axes: Floats, rng: np.random.Generator) -> Floats:
    """(n, k) uniform unit vectors with <V, u> = height (n,), for unit vectors u (n, k).

    A standard normal vector without its part along u has a uniform direction across u.
    """
    across = rng.standard_normal(axes.shape)
    along = np.einsum("ij,ij->i", across, axes)
    squared = np.einsum("ij,ij->i", across, across) - np.square(along)
    length = np.sqrt(np.maximum(squared, np.finfo(float).tiny))
    factor = np.sqrt(np.maximum(1.0 - np.square(heights), 0.0)) / length
    across *= factor[:, None]
    across += (heights - along * factor)[:, None] * axes
    return across
