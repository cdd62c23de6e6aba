"""PrivUnit after a public random projection: messages of few bytes.

The owner draws a random k-dimensional subspace and sends its seed, which depends on nothing. With S
(k, D) an orthonormal basis of it, she sends PrivUnit of the direction of S u, which is e-private
whatever the subspace is. The broker turns the point x back into S^T x, and a simulation draws that
from its distribution. By symmetry its mean has the direction of u, and its length is the mean of
<V, S u / |S u|> times that of |S u|:

    m = m_k mu,   mu = E|S u| = Gamma(D/2) Gamma((k + 1)/2) / (Gamma(k/2) Gamma((D + 1)/2)).

S^T x / m is unbiased and has length 1 / m, so the total variance is C^2 (1 / m^2 - 1), a few
percent more than PrivUnit's in D dimensions. The idea of projecting before PrivUnit is that of Asi,
Feldman, Nelson, Nguyen and Talwar (2023).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.domains import Domain, in_domain, norms
from flmarket_sim.perturbation.perturbation import checked_losses, variance_from
from flmarket_sim.perturbation.priv_unit import (
    ROWS,
    BestCap,
    Length,
    best_cap,
    heights,
    kept_variance,
    release_unit,
    sphere_dimension,
    with_extra_coordinate,
)
from flmarket_sim.perturbation.sphere_caps import gamma_ratio, points_at
from flmarket_sim.perturbation.worst_pair import WorstPair, axis_pair

Floats = NDArray[np.float64]
SEED_BYTES, NUMBER_BYTES = 8, 8


class ProjUnit:
    """PrivUnit in a random subspace of `size` dimensions: a message is `size` numbers and a seed.

    length is as in priv-unit. Gradients of at most `size` coordinates are not projected.
    """

    name = "proj-unit"
    domain: Domain = "l2"

    def __init__(self, size: int = 32, length: Length = "kept") -> None:
        if size < 2:
            raise InputError(f"size must be at least 2: a subspace with directions (got {size})")
        self.size, self.length = size, length
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
        whole = sphere_dimension(gradients.shape[1], self.length, self.name)
        size = min(self.size, whole)
        cap = best_cap(losses, size)
        factor = clip / (cap.height * mean_length(size, whole))
        released = np.empty(gradients.shape)
        step = max(1, ROWS // whole)
        for begin in range(0, len(gradients), step):
            rows = slice(begin, begin + step)
            some = BestCap(*(column[rows] for column in cap))
            units = (
                with_extra_coordinate(gradients[rows], clip)
                if self.length == "kept"
                else gradients[rows] / clip
            )
            points = (
                release_projected(units, size, some, rng)
                if size < whole
                else release_unit(units, some, rng)
            )
            np.multiply(points[:, : gradients.shape[1]], factor[rows, None], out=released[rows])
        return released

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        loss = np.asarray(privacy_loss, np.float64)
        whole = sphere_dimension(dimension, self.length, self.name)
        size = min(self.size, whole)
        cap = best_cap(loss[loss > 0], size)
        mean = cap.height * mean_length(size, whole)
        if self.length == "unit":
            return variance_from(loss, clip**2 * (1.0 / mean**2 - 1.0))
        square = cap.mean_square * (size / whole)
        return variance_from(loss, kept_variance(mean, square, dimension, clip))

    def message_bytes(self, dimension: int, privacy_loss: float) -> int:
        """The numbers of the point, and the seed of the subspace."""
        whole = sphere_dimension(dimension, self.length, self.name)
        if self.size >= whole:
            return NUMBER_BYTES * whole
        return NUMBER_BYTES * self.size + SEED_BYTES

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """Without a projection, the cap as in priv-unit. With one, heights along u: from C / mu on
        a point is in its cap whatever the subspace is, since |S u| <= 1, and the chances differ by
        exp(e); but few points are so high, and lower ones tell nearly as much."""
        projected = self.size < sphere_dimension(dimension, self.length, self.name)
        return axis_pair(dimension, clip, None if projected else clip)


def mean_length(size: int, dimension: int) -> float:
    """mu: the mean length of a unit vector's projection on a random subspace."""
    return 1.0 if size >= dimension else gamma_ratio(0.5 * size) / gamma_ratio(0.5 * dimension)


def release_projected(units: Floats, size: int, cap: BestCap, rng: np.random.Generator) -> Floats:
    """(n, D) points S^T x for unit vectors (n, D), each in a random subspace of its own.

    No subspace is made. With P = S^T S and a = |P u|, a^2 is distributed as Beta(k/2, (D - k)/2),
    and P u / a = a u + sqrt(1 - a^2) n for a uniform n across u. What x has across S u is a uniform
    direction of the subspace across P u, so that it is across u and n too.
    """
    count, dimension = units.shape
    height = heights(cap, size, rng)
    along = np.sqrt(rng.beta(0.5 * size, 0.5 * (dimension - size), count))
    projected = points_at(along, units, rng)
    across = rng.standard_normal(units.shape)
    for axis in (units, projected - along[:, None] * units):
        squared = np.einsum("ij,ij->i", axis, axis)
        share = np.einsum("ij,ij->i", across, axis) / np.maximum(squared, np.finfo(float).tiny)
        across -= share[:, None] * axis
    rest = np.sqrt(np.maximum(1.0 - np.square(height), 0.0)) / norms(across, "l2")
    return np.asarray(height[:, None] * projected + rest[:, None] * across)
