"""Releases on a sphere as mixtures of caps: what the perturbations on spheres have in common.

PrivUnit, ProjUnit and the mechanism of Duchi et al. for the L2 ball send r V for a point V of the
unit sphere in k dimensions, or the first D of its D + 1 coordinates. Around the unit vector u that
stands for the gradient, the density of V rises with <V, u>: it is a mixture of the uniform density
and of caps of u. For a unit vector a with <u, a> = c the chance of <V, a> <= t therefore falls in
c: for a uniform V this is Slepian's inequality, which holds for all elliptically contoured vectors
(Das Gupta, Eaton, Olkin, Perlman, Savage and Sobel 1972), applied to -V along u and V along a.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.perturbation.duchi_l2 import DuchiL2, sphere_radius
from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.perturbation.priv_unit import BestCap, PrivUnit, best_cap, sphere_dimension
from flmarket_sim.perturbation.proj_unit import ProjUnit, mean_length
from flmarket_sim.perturbation.sphere_caps import cap_mass, height_of_tail

Floats = NDArray[np.float64]
ALONG, HEIGHTS = 16, 128  # nodes: lengths of projections, heights in the cap
LENGTHS = 9  # gradients of that many lengths are tried where rounding makes a short one random


@dataclass(frozen=True)
class SphereReleases:
    """The releases r V of n owners.

    radius      (n,) r
    dimension   k, of the sphere
    extra       whether the message lacks the last coordinate of r V
    cap         for each owner the cap in `inner` dimensions that V comes from
    inner       the dimensions of the owner's own sphere: k, or fewer after a projection
    rounds      whether a short gradient is rounded at random to its direction or the opposite
    """

    radius: Floats
    dimension: int
    extra: bool
    cap: BestCap
    inner: int
    rounds: bool = False

    def rows(self, rows: Any) -> SphereReleases:
        """The same for some owners."""
        cap = BestCap(*(column[rows] for column in self.cap))
        return SphereReleases(
            self.radius[rows], self.dimension, self.extra, cap, self.inner, self.rounds
        )

    @property
    def evenly(self) -> Floats:
        """(n,) the share of the uniform distribution in the mixture: the least density."""
        return np.asarray((1.0 - self.cap.chance) / (1.0 - self.cap.mass))

    def most_dense(self) -> Floats:
        """(n,) the largest density over the uniform one."""
        return np.asarray(self.cap.chance / self.cap.mass)


def on_a_sphere(
    perturbation: Perturbation, privacy_loss: Floats, dimension: int, clip: float
) -> SphereReleases | None:
    """The releases of owners who sold losses (n,); None for a perturbation of another kind."""
    if type(perturbation) is DuchiL2:
        chance = 1.0 / (1.0 + np.exp(-privacy_loss))
        half = np.full_like(chance, 0.5)
        cap = BestCap(np.zeros_like(chance), half, chance, half)
        radius = sphere_radius(privacy_loss, dimension, clip)
        return SphereReleases(radius, dimension, False, cap, dimension, rounds=True)
    if type(perturbation) in (PrivUnit, ProjUnit):
        length = perturbation.length  # type: ignore[attr-defined]
        whole = sphere_dimension(dimension, length, perturbation.name)
        size = getattr(perturbation, "size", whole)
        inner = min(size, whole)
        cap = best_cap(privacy_loss, inner)
        radius = clip / (cap.height * mean_length(inner, whole))
        return SphereReleases(radius, whole, length == "kept", cap, inner)
    return None


def uniform_below(height: Any, dimension: int) -> Floats:
    """P(T <= height) for a uniform point of the sphere; heights beyond the sphere are possible."""
    inside = np.clip(height, -1.0, 1.0)
    if dimension == 1:
        return np.where(np.asarray(height) >= 1.0, 1.0, np.where(np.asarray(height) < -1, 0.0, 0.5))
    tail = cap_mass(np.abs(inside), dimension)
    return np.asarray(np.where(inside < 0, tail, 1.0 - tail))


def along_the_axis(of: SphereReleases, height: Floats) -> Floats:
    """(n,) P(<V, u> <= height) of owners whose gradients have full length."""
    if of.inner == of.dimension:
        return _in_own_sphere(of.cap, height, of.inner)
    shares = (np.arange(ALONG) + 0.5) / ALONG
    chances = [
        _in_own_sphere(of.cap, height / along, of.inner)
        for along in _projection_lengths(shares, of.inner, of.dimension)
    ]
    return np.asarray(np.mean(chances, axis=0))


def at_an_angle(of: SphereReleases, height: Floats, cosine: Floats) -> Floats:
    """(n,) P(<V, a> <= height) for unit vectors a with <u, a> = cosine, each below 1.

    V = <V, u> u and something uniform across u: the chance is a mean over nodes of <V, u>.
    """
    nodes = axis_heights(of)
    across = np.sqrt(np.maximum(1.0 - cosine**2, 1e-300)) * np.sqrt(np.maximum(1.0 - nodes**2, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        point = (height - cosine * nodes) / across
    point = np.where(across > 0, point, np.where(height >= cosine * nodes, 2.0, -2.0))
    return np.asarray(uniform_below(point, of.dimension - 1).mean(axis=0))


def axis_heights(of: SphereReleases) -> Floats:
    """(nodes, n) heights <V, u> that are equally likely, by strata of their distribution."""
    shares = ((np.arange(HEIGHTS) + 0.5) / HEIGHTS)[:, None]
    chance, mass = of.cap.chance, of.cap.mass
    if of.inner == 1:
        return np.where(shares < chance, 1.0, -1.0)
    outside = mass + (shares - chance) / np.maximum(1.0 - chance, 1e-300) * (1.0 - mass)
    tail = np.where(shares < chance, shares / chance * mass, outside)
    heights = height_of_tail(np.clip(tail, 0.0, 1.0), of.inner)
    if of.inner == of.dimension:
        return np.asarray(heights)
    along = _projection_lengths((np.arange(ALONG) + 0.5) / ALONG, of.inner, of.dimension)
    return np.asarray((heights[None] * along[:, None, None]).reshape(-1, len(of.radius)))


def _in_own_sphere(cap: BestCap, height: Floats, dimension: int) -> Floats:
    """P(<V, u> <= height): the uniform part below the cap, and what of the cap is below."""
    below = uniform_below(height, dimension)
    low = np.minimum(below, 1.0 - cap.mass)
    inside = np.maximum(below - (1.0 - cap.mass), 0.0)
    return np.asarray(low * (1.0 - cap.chance) / (1.0 - cap.mass) + inside * cap.chance / cap.mass)


def _projection_lengths(shares: Floats, inner: int, dimension: int) -> Floats:
    """Quantiles of the length of a unit vector's projection on a random subspace."""
    from scipy.special import betaincinv

    return np.asarray(np.sqrt(betaincinv(0.5 * inner, 0.5 * (dimension - inner), shares)))
