"""PrivUnit after a public random projection: messages of few bytes.

The owner draws a random k-dimensional subspace and sends its seed, which depends on nothing. With S
(k, D) an orthonormal basis of it, she sends PrivUnit of the direction of S u, which is e-private
whatever the subspace is. The broker turns the point x back into S^T x. By symmetry its mean has the
direction of u, and its length is the mean of <V, S u / |S u|> times that of |S u|:

    m = m_k mu,   mu = E|S u| = Gamma(D/2) Gamma((k + 1)/2) / (Gamma(k/2) Gamma((D + 1)/2)).

S^T x / m is unbiased and has length 1 / m, so the total variance is C^2 (1 / m^2 - 1), a few
percent more than PrivUnit's in D dimensions. The idea of projecting before PrivUnit is that of Asi,
Feldman, Nelson, Nguyen and Talwar (2023).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.domains import Domain, in_domain
from flmarket_sim.perturbation.perturbation import checked_losses, variance_from
from flmarket_sim.perturbation.priv_unit import (
    BestCap,
    Length,
    best_cap,
    kept_variance,
    release_unit,
    sphere_dimension,
    with_extra_coordinate,
)
from flmarket_sim.perturbation.sphere_caps import gamma_ratio

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
        for row in range(len(gradients)):
            one = gradients[row : row + 1]
            unit = with_extra_coordinate(one, clip) if self.length == "kept" else one / clip
            basis = random_subspace(size, whole, rng) if size < whole else None
            inside = unit if basis is None else unit @ basis.T
            inside = inside / np.linalg.norm(inside)
            chosen = BestCap(*(column[row : row + 1] for column in cap))
            point = release_unit(inside, chosen, rng)
            back = point if basis is None else point @ basis
            released[row] = back[0, : gradients.shape[1]] * factor[row]
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


def mean_length(size: int, dimension: int) -> float:
    """mu: the mean length of a unit vector's projection on a random subspace."""
    return 1.0 if size >= dimension else gamma_ratio(0.5 * size) / gamma_ratio(0.5 * dimension)


def random_subspace(size: int, dimension: int, rng: np.random.Generator) -> Floats:
    """(k, D) an orthonormal basis of a uniformly random subspace.

    With L L^T = G G^T for a normal matrix G, the rows of L^-1 G are orthonormal, and no rotation of
    the space changes their distribution.
    """
    normal = rng.standard_normal((size, dimension))
    lower = np.linalg.cholesky(normal @ normal.T)
    return np.asarray(np.linalg.solve(lower, normal))
