"""How near an honest message may come to a message that is known already.

The chance that a fresh release lies within a distance d of a given vector v is bounded for every
gradient, also for one that lies where v points to, so that no assumption is needed:

- additive noise: at most that of |noise| <= d (Anderson 1955), and that is at most the volume of
  the ball times the largest density
- spheres: within d of v a message has an angle to v whose sine is at most d / |v|. A uniform point
  has this with the mass of a cap, and the density of a release is at most p / q times the uniform
- Duchi's cube: k flipped coordinates are at 2 k^(1/2) times half the edge, and a corner has at
  most exp(e) times the chance of a uniform one
- piecewise: the same coordinates must be drawn, and each value lies in an interval of length 2 d
- all others: counted around zeros, and then for every gradient by the promise of privacy
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.any_gradient import under_any_gradient
from flmarket_sim.checks.simulated_noise import counted, releases
from flmarket_sim.checks.sphere_releases import on_a_sphere
from flmarket_sim.perturbation.duchi_linf import DuchiLinf, cube_size
from flmarket_sim.perturbation.gaussian import Gaussian
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.perturbation.perturbation import LARGEST, Perturbation, delta_of
from flmarket_sim.perturbation.piecewise import Piecewise, coordinates

Floats = NDArray[np.float64]


def near_chance(
    perturbation: Perturbation, loss: float, clip: float, distance: Floats, known: Floats
) -> Floats:
    """(R,) bounds on the chance that a release at one loss is within distances (R,) of vectors
    (R, D)."""
    dimension = known.shape[1]
    losses = np.full(1, loss)
    sphere = on_a_sphere(perturbation, losses, dimension, clip)
    if sphere is not None:
        return np.minimum(1.0, sphere.most_dense() * _small_angle(distance, known))
    if type(perturbation) in (Gaussian, Laplace):
        scale = float(perturbation.noise_scale(losses, clip)[0])  # type: ignore[attr-defined]
        return _in_ball(distance / scale, dimension, normal=type(perturbation) is Gaussian)
    if type(perturbation) is DuchiLinf:
        return _flipped(distance / float(cube_size(losses, dimension, clip)[0]), dimension, loss)
    if type(perturbation) is Piecewise:
        return _same_places(distance, known, loss, clip)
    return _simulated(perturbation, loss, clip, distance, known)


def _small_angle(distance: Floats, known: Floats) -> Floats:
    """The share of directions whose angle to a vector has a sine of at most distance / length."""
    from scipy.special import betainc

    dimension = known.shape[1]
    length = np.sqrt(np.einsum("ij,ij->i", known, known))
    sine = np.minimum(distance / np.maximum(length, np.finfo(float).tiny), 1.0)
    if dimension == 1:
        return np.where(sine < 1.0, 0.5, 1.0)
    inside = 0.5 * betainc(0.5 * (dimension - 1), 0.5, sine**2)
    return np.where(sine < 1.0, inside, 1.0)


def _in_ball(distance: Floats, dimension: int, normal: bool) -> Floats:
    """|noise| <= distance, in units of its scale."""
    from scipy.special import gammainc

    if normal:
        return np.asarray(gammainc(0.5 * dimension, 0.5 * distance**2))
    volume = 0.5 * dimension * math.log(math.pi) - math.lgamma(0.5 * dimension + 1.0)
    logarithm = volume + dimension * (np.log(distance) - math.log(2.0))
    return np.asarray(np.exp(np.minimum(logarithm, 0.0)))


def _flipped(distance: Floats, dimension: int, loss: float) -> Floats:
    from scipy.special import bdtr

    flips = np.minimum(np.floor(0.25 * distance**2 + 1e-9), dimension)
    uniform = bdtr(flips, dimension, 0.5)
    return np.asarray(np.minimum(1.0, uniform * math.exp(min(loss, LARGEST))))


def _same_places(distance: Floats, known: Floats, loss: float, clip: float) -> Floats:
    dimension = known.shape[1]
    number = int(coordinates(np.array([loss]), dimension)[0])
    z = math.exp(0.5 * min(loss / number, LARGEST))
    dense = 0.5 * z * (z - 1.0) / (z + 1.0)  # the density in the interval: z / (z + 1) / (S - 1)
    each = np.minimum(1.0, 2.0 * distance * number / (clip * dimension) * dense)
    places = math.lgamma(dimension + 1) - math.lgamma(number + 1)
    places -= math.lgamma(dimension - number + 1)
    size = np.abs(known)
    with np.errstate(invalid="ignore"):
        least = np.where(size > 0, size, np.inf).min(axis=1)
    apart = (size > 0).sum(axis=1) == number
    return np.where(apart & (distance < least), each**number * math.exp(-places), 1.0)


def _simulated(
    perturbation: Perturbation, loss: float, clip: float, distance: Floats, known: Floats
) -> Floats:
    drawn = releases(perturbation, loss, known.shape[1], clip)
    squared = np.einsum("ij,ij->i", drawn, drawn)[:, None] - 2.0 * drawn @ known.T
    squared += np.einsum("ij,ij->i", known, known)
    hits = counted((squared <= distance**2).sum(axis=0), len(drawn))
    return under_any_gradient(hits, loss, delta_of(perturbation))
