"""How short or long an honest message may be.

Two chances for a squared length s: P(|m|^2 <= s) and P(|m|^2 >= s), each the largest over all
gradients of the domain, so that they hold whatever an owner's gradient is. Where the gradient that
makes them largest is known:

- additive noise (Laplace, Gaussian): lengths are shortest for zeros, because the noise has a
  log-concave symmetric density (Anderson 1955). The chance of a ball as a function of the gradient
  is log-concave (Prekopa), so it is least at an extreme point of the domain: an axis of full length
- points of a sphere: the length is known, but for the coordinate that PrivUnit drops. It is large
  with at most the chance of a uniform point times the density of the cap
- piecewise: |x| rises with |t| in every coordinate, so zeros and corners are extreme

Other perturbations are simulated at zeros, and the promise of privacy bounds the rest.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.any_gradient import under_any_gradient
from flmarket_sim.checks.simulated_noise import MOST, SEED, counted, laplace_lengths, releases
from flmarket_sim.checks.sphere_releases import SphereReleases, on_a_sphere
from flmarket_sim.perturbation.duchi_l2 import DuchiL2
from flmarket_sim.perturbation.duchi_linf import DuchiLinf, cube_size
from flmarket_sim.perturbation.gaussian import Gaussian
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.perturbation.perturbation import LARGEST, Perturbation, delta_of
from flmarket_sim.perturbation.piecewise import Piecewise, coordinates, one_coordinate
from flmarket_sim.perturbation.priv_unit import PrivUnit
from flmarket_sim.perturbation.proj_unit import ProjUnit
from flmarket_sim.perturbation.sphere_caps import cap_mass

Floats = NDArray[np.float64]
Tails = tuple[Floats, Floats]
CAUTION = 1.05  # times exact chances, as counted ones have a margin too
ROUNDING = 1e-6  # relative, of a length that is known


def length_tails(
    perturbation: Perturbation, privacy_loss: Floats, dimension: int, clip: float, squared: Floats
) -> Tails:
    """(n,) chances of squared lengths (n,) or less, and of these or more."""
    sphere = on_a_sphere(perturbation, privacy_loss, dimension, clip)
    if sphere is not None:
        return _of_sphere(sphere, squared)
    if type(perturbation) is DuchiLinf:
        return _exactly(dimension * cube_size(privacy_loss, dimension, clip) ** 2, squared)
    if type(perturbation) is Gaussian:
        return _of_gaussian(perturbation.noise_scale(privacy_loss, clip), dimension, clip, squared)
    if type(perturbation) is Laplace:
        return _of_laplace(privacy_loss, dimension, clip, squared)
    if type(perturbation) is Piecewise:
        return _of_piecewise(privacy_loss, dimension, clip, squared)
    return _simulated(perturbation, privacy_loss, dimension, clip, squared)


def longest_is_known(perturbation: Perturbation) -> bool:
    """Whether no honest message is longer than a known length, so that one side is never chance."""
    return type(perturbation) in (PrivUnit, ProjUnit, DuchiL2, DuchiLinf)


def _exactly(known: Floats, squared: Floats) -> Tails:
    short, long = squared < known * (1 - ROUNDING), squared > known * (1 + ROUNDING)
    return np.where(short, 0.0, 1.0), np.where(long, 0.0, 1.0)


def _of_sphere(of: SphereReleases, squared: Floats) -> Tails:
    low, high = _exactly(of.radius**2, squared)
    if not of.extra:
        return low, high
    dropped = np.sqrt(np.clip(1.0 - squared / of.radius**2 * (1 + ROUNDING), 0.0, 1.0))
    uniform = 2.0 * cap_mass(dropped, of.dimension)
    share = of.evenly
    return share * uniform + (1.0 - share) * np.minimum(1.0, uniform / of.cap.mass), high


def _of_gaussian(scale: Floats, dimension: int, clip: float, squared: Floats) -> Tails:
    from scipy.stats import chi2, ncx2

    unit = squared / scale**2
    low = np.minimum(1.0, CAUTION * chi2.cdf(unit, dimension))
    return low, np.minimum(1.0, CAUTION * ncx2.sf(unit, dimension, (clip / scale) ** 2))


def _of_laplace(privacy_loss: Floats, dimension: int, clip: float, squared: Floats) -> Tails:
    first, rest = laplace_lengths(dimension)
    unit = squared * (0.5 * privacy_loss / clip) ** 2
    none = np.sort(first**2 + rest)
    low = counted(np.searchsorted(none, unit, side="right"), len(none))
    high = np.empty(len(unit))
    for loss in np.unique(privacy_loss):
        rows = privacy_loss == loss
        axis = np.sort((first + 0.5 * loss) ** 2 + rest)
        high[rows] = len(axis) - np.searchsorted(axis, unit[rows], side="left")
    return low, counted(high, len(none))


def _of_piecewise(privacy_loss: Floats, dimension: int, clip: float, squared: Floats) -> Tails:
    low, high = np.empty(len(squared)), np.empty(len(squared))
    sent = coordinates(privacy_loss, dimension)
    for loss in np.unique(privacy_loss):
        rows = privacy_loss == loss
        number = int(sent[rows][0])
        unit = squared[rows] / (clip * dimension / number) ** 2
        drawn = _piecewise_lengths(min(float(loss) / number, LARGEST), number)
        low[rows] = counted(np.searchsorted(drawn[0], unit * (1 + ROUNDING), "right"), MOST)
        high[rows] = counted(MOST - np.searchsorted(drawn[1], unit * (1 - ROUNDING)), MOST)
    return low, high


@lru_cache(maxsize=32)
def _piecewise_lengths(loss: float, number: int) -> tuple[Floats, Floats]:
    """(M,) sorted squared lengths of zeros, and of corners, of the coordinates that are sent."""
    drawn = []
    for value in (0.0, 1.0):
        rng = np.random.default_rng([SEED, number, 5])
        values = one_coordinate(np.full((MOST, number), value), np.full((1, 1), loss), rng)
        drawn.append(np.sort(np.square(values).sum(axis=1)))
    return drawn[0], drawn[1]


def _simulated(
    perturbation: Perturbation, privacy_loss: Floats, dimension: int, clip: float, squared: Floats
) -> Tails:
    low, high = np.empty(len(squared)), np.empty(len(squared))
    for loss in np.unique(privacy_loss):
        rows = privacy_loss == loss
        drawn = releases(perturbation, float(loss), dimension, clip)
        lengths = np.sort(np.einsum("ij,ij->i", drawn, drawn))
        near = squared[rows]
        low[rows] = counted(np.searchsorted(lengths, near * (1 + ROUNDING), "right"), len(drawn))
        above = len(drawn) - np.searchsorted(lengths, near * (1 - ROUNDING), "left")
        high[rows] = counted(above, len(drawn))
    delta = delta_of(perturbation)
    return (
        under_any_gradient(low, privacy_loss, delta),
        under_any_gradient(high, privacy_loss, delta),
    )
