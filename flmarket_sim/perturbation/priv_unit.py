"""PrivUnit: a random unit vector near the gradient's direction (Bhowmick et al. 2018).

For a unit vector u in k dimensions and the cap {v: <v, u> >= gamma} with mass q (sphere_caps.py),
the release is a uniform point of the cap with chance p, and of the rest with chance 1 - p. Its
density is p / q or (1 - p) / (1 - q), so it is e-private between any two inputs if the ratio of the
two is exp(e). With w = 1 / (exp(e) - 1) that gives p = q (1 + w) / (q + w), and the mean of the
release is m u with

    m(gamma) = a(gamma) / (q(gamma) + w).

Released is C V / m, which is unbiased and has the total variance C^2 (1 / m^2 - 1). The best gamma
has m'(gamma) = 0, and since a' = gamma q' that says gamma = m(gamma): the cap of the best height
has that height as its mean. gamma (q + w) - a rises in gamma with slope q + w, so there is one
solution, and Newton's step from gamma is m(gamma). A few steps reach it to the last digits.

A gradient shorter than C gets one more coordinate, sqrt(C^2 - |g|^2), is released with it, and
loses it again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.domains import Domain, in_domain
from flmarket_sim.perturbation.perturbation import LARGEST, checked_losses, variance_from
from flmarket_sim.perturbation.sphere_caps import (
    cap_mass,
    cap_mean,
    height_of_tail,
    mean_square_above,
    points_at,
)
from flmarket_sim.perturbation.worst_pair import WorstPair, axis_pair

Floats = NDArray[np.float64]
Length = Literal["kept", "unit"]
MOST_STEPS = 20
ROUNDING = 1e-9  # relative, of a Newton step: the next one is exact to the last digits
FAR, HALVINGS = 1e-4, 40  # losses above 9; halvings that find the neighbourhood of the best height
LARGEST_DIMENSION = 10**6 + 1
FEW = 64  # losses that are solved one by one
ROWS = 2**20  # numbers of vectors in memory at once


class BestCap(NamedTuple):
    """The caps of the least variance, one for each privacy loss.

    height        the mean m of <V, u>, which is also gamma (in more than one dimension)
    mass          q, of the uniform distribution
    chance        p, of the release
    mean_square   of <V, u>
    """

    height: Floats
    mass: Floats
    chance: Floats
    mean_square: Floats


def best_cap(privacy_loss: Floats, dimension: int) -> BestCap:
    """The best caps in a dimension for losses above 0 (of any shape).

    In one dimension the sphere has two points, and a cap is one of them: randomised response. A few
    losses are solved one by one and remembered, since a market asks for each several times. Of
    many, each is solved once.
    """
    if privacy_loss.size <= FEW:
        caps = [_one_cap(loss, dimension) for loss in privacy_loss.ravel().tolist()]
        columns = np.array(caps, np.float64).reshape(*privacy_loss.shape, 4)
        return BestCap(*np.moveaxis(columns, -1, 0))
    different, place = np.unique(privacy_loss, return_inverse=True)
    place = place.reshape(privacy_loss.shape)
    if different.size <= FEW:
        return BestCap(*(column[place] for column in best_cap(different, dimension)))
    return BestCap(*(column[place] for column in _solved(different, dimension)))


@lru_cache(maxsize=2**13)  # some MB in a process that does many runs
def _one_cap(privacy_loss: float, dimension: int) -> tuple[float, ...]:
    return tuple(float(column) for column in _solved(np.float64(privacy_loss), dimension))


def _solved(privacy_loss: Any, dimension: int) -> BestCap:
    w = 1.0 / np.expm1(np.minimum(privacy_loss, LARGEST))
    if dimension == 1:
        ones = np.ones_like(w)
        return BestCap(0.5 / (0.5 + w), 0.5 * ones, 0.5 * (1.0 + w) / (0.5 + w), ones)
    height = _best_height(w, dimension)
    mass = cap_mass(height, dimension)
    chance = mass * (1.0 + w) / (mass + w)
    inside = mean_square_above(height, dimension)
    outside = 1.0 / dimension - inside
    return BestCap(height, mass, chance, inside * chance / mass + outside * w / (mass + w))


def _best_height(w: Any, dimension: int) -> Any:
    """The gamma with gamma = m(gamma): Newton's steps, which begin slowly at losses above about 10,
    where halving finds the neighbourhood first."""
    height = cap_mean(0.0 * w, dimension) / (0.5 + w)
    if np.any(w < FAR):
        height = _halved(w, dimension, height)
    for _ in range(MOST_STEPS):
        better = cap_mean(height, dimension) / (cap_mass(height, dimension) + w)
        better = np.minimum(better, 1.0 - 1e-15)
        done = np.all(np.abs(better - height) <= ROUNDING * better)
        height = better
        if done:
            break
    return height


def _halved(w: Any, dimension: int, low: Any) -> Any:
    """Heights near the solution, which is above `low`."""
    high = np.ones_like(low)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        rises = middle * (cap_mass(middle, dimension) + w) < cap_mean(middle, dimension)
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return low


def heights(cap: BestCap, dimension: int, rng: np.random.Generator) -> Floats:
    """(n,) <V, u> of releases on the sphere, one cap each."""
    uniform = rng.random((2, len(cap.chance)))
    inside = uniform[0] < cap.chance
    if dimension == 1:
        return np.where(inside, 1.0, -1.0)
    tail = np.where(inside, uniform[1] * cap.mass, cap.mass + uniform[1] * (1.0 - cap.mass))
    return height_of_tail(tail, dimension)


def release_unit(units: Floats, cap: BestCap, rng: np.random.Generator) -> Floats:
    """(n, k) points of the sphere near unit vectors (n, k), one cap each: PrivUnit itself."""
    height = heights(cap, units.shape[1], rng)
    return units * height[:, None] if units.shape[1] == 1 else points_at(height, units, rng)


def with_extra_coordinate(gradients: Floats, clip: float) -> Floats:
    """(n, D + 1) gradients of norm at most `clip`, lengthened to unit vectors by one coordinate."""
    units = np.empty((len(gradients), gradients.shape[1] + 1))
    np.divide(gradients, clip, out=units[:, :-1])
    squared = np.einsum("ij,ij->i", units[:, :-1], units[:, :-1])
    units[:, -1] = np.sqrt(np.maximum(1.0 - squared, 0.0))
    return units


def kept_variance(mean: Floats, mean_square: Floats, dimension: int, clip: float) -> Floats:
    """The largest variance of D coordinates of a release in D + 1 that is scaled to mean 1.

    With s = |g|^2 / C^2, <V, u>^2 of mean b and the rest spread evenly over D directions, the last
    coordinate has the second moment b (1 - s) + (1 - b) s / D. So the variance of the others is
    linear in s, and largest at s = 0 or s = 1.
    """
    at_zero = (1.0 - mean_square) / mean**2
    at_one = (1.0 - (1.0 - mean_square) / dimension) / mean**2 - 1.0
    return np.asarray(clip**2 * np.maximum(at_zero, at_one))


class PrivUnit:
    """A unit vector near the gradient's direction: the least noise known for a whole vector.

    length = "kept": gradients shorter than `clip` keep their length in the mean.
    length = "unit": only the direction is sent, as a vector of length `clip`.
    """

    name = "priv-unit"
    domain: Domain = "l2"

    def __init__(self, length: Length = "kept") -> None:
        self.length = length
        self.domain = "l2" if length == "kept" else "sphere"

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
        cap = best_cap(losses, sphere_dimension(gradients.shape[1], self.length, self.name))
        released = np.empty(gradients.shape)
        step = max(1, ROWS // gradients.shape[1])
        for begin in range(0, len(gradients), step):
            rows = slice(begin, begin + step)
            some = BestCap(*(column[rows] for column in cap))
            units = (
                with_extra_coordinate(gradients[rows], clip)
                if self.length == "kept"
                else gradients[rows] / clip
            )
            points = release_unit(units, some, rng)[:, : gradients.shape[1]]
            np.multiply(points, (clip / some.height)[:, None], out=released[rows])
        return released

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        loss = np.asarray(privacy_loss, np.float64)
        cap = best_cap(loss[loss > 0], sphere_dimension(dimension, self.length, self.name))
        if self.length == "unit":
            spread = 1.0 / cap.height**2 - 1.0  # 0 by rounding in one dimension, at losses of 40
            least = 4.0 * np.exp(-np.minimum(loss[loss > 0], LARGEST))
            return variance_from(loss, clip**2 * np.where(spread > 0.0, spread, least))
        return variance_from(loss, kept_variance(cap.height, cap.mean_square, dimension, clip))

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """The cap of a gradient of length C: since gamma = m, it begins at C once it is scaled. Its
        chances are p and q (1 - p) / (1 - q)."""
        return axis_pair(dimension, clip, clip)


def sphere_dimension(dimension: int, length: Length, name: str) -> int:
    """The dimension of the sphere for gradients of so many coordinates."""
    whole = dimension + 1 if length == "kept" else dimension
    if not 1 <= whole <= LARGEST_DIMENSION:
        raise InputError(
            f"perturbation {name!r} takes gradients of 1 to {LARGEST_DIMENSION - 1:,} coordinates, "
            f"not {dimension:,}"
        )
    return whole
