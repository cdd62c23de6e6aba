"""The mechanism of Duchi, Jordan and Wainwright (2018) for the box: a random corner of a cube.

Each coordinate of a gradient in [-C, C]^D is rounded at random to one of its ends, so that the mean
stays: v in {-1, 1}^D. The release is a corner s of a larger cube. Corners with <s, v> >= 0 have
exp(e) times the chance of the others:

    P(s) = exp(e) / Z or 1 / Z,   Z = N+ exp(e) + N-,   N+ = #{s: <s, v> >= 0},  N- = 2^D - N+
    E<s, v> = (exp(e) - 1) D binom(D - 1, floor(D / 2)) / Z

For even D there are corners with <s, v> = 0. The published algorithm draws them on both sides,
which gives them exp(e) + 1 times the chance of the least likely corners. Here they belong to one
side, so that the ratio is exp(e) for every D.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.perturbation.domains import Domain, in_domain
from flmarket_sim.perturbation.perturbation import checked_losses, variance_from
from flmarket_sim.perturbation.worst_pair import WorstPair, corner_pair

Floats = NDArray[np.float64]
NUMBERS = 2**20  # in memory at once


class DuchiLinf:
    """A random corner of a cube; each coordinate is clipped by itself (Duchi et al. 2018)."""

    name = "duchi-linf"
    domain: Domain = "linf"

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
        count, dimension = gradients.shape
        _, likely = _shares(losses, dimension)
        scale = cube_size(losses, dimension, clip)
        on_side = rng.random(count) < likely
        released = np.empty(gradients.shape)
        step = max(1, NUMBERS // dimension)
        for begin in range(0, count, step):
            rows = slice(begin, begin + step)
            rounded = rng.random(gradients[rows].shape) < 0.5 + gradients[rows] / (2.0 * clip)
            corners = _corners(rounded, on_side[rows], rng)
            released[rows] = np.where(corners, 1.0, -1.0) * scale[rows, None]
        return released

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        """D times the square of the cube's half edge, less |g|^2: largest for zeros."""
        loss = np.asarray(privacy_loss, np.float64)
        size = cube_size(loss[loss > 0], dimension, clip)
        return variance_from(loss, dimension * size**2)

    def message_bytes(self, dimension: int, privacy_loss: float) -> int:
        """A bit for each coordinate, and the size of the cube."""
        return (dimension + 7) // 8 + 8

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """More ones than minus ones: these corners have the chances exp(e) / Z and 1 / Z each."""
        half_edge = cube_size(np.array([privacy_loss]), dimension, clip)[0]
        return corner_pair(dimension, clip, 0.5 * float(half_edge))


def _corners(
    rounded: NDArray[np.bool_], on_side: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """(n, D) uniform corners on the side of `rounded` (n, D), or on the other: drawn until they
    fit."""
    count, dimension = rounded.shape
    corners = np.empty(rounded.shape, bool)
    left = np.arange(count)
    while len(left):
        drawn = rng.integers(0, 2, (len(left), dimension), dtype=np.int8).astype(bool)
        agreeing = (drawn == rounded[left]).sum(axis=1)
        fits = (2 * agreeing >= dimension) == on_side[left]
        corners[left[fits]] = drawn[fits]
        left = left[~fits]
    return corners


def _shares(privacy_loss: Floats, dimension: int) -> tuple[float, Floats]:
    """N+ / 2^D, and the chance that the release is on the gradient's side."""
    tie = math.exp(_log_binomial(dimension, dimension // 2) - dimension * math.log(2.0))
    upper = 0.5 if dimension % 2 else 0.5 * (1.0 + tie)
    return upper, upper / (upper + (1.0 - upper) * np.exp(-privacy_loss))


def cube_size(privacy_loss: Floats, dimension: int, clip: float) -> Floats:
    """Half of the edge with which the mean of a release is the gradient: C D / E<s, v>."""
    upper, _ = _shares(privacy_loss, dimension)
    share = math.exp(_log_binomial(dimension - 1, dimension // 2) - dimension * math.log(2.0))
    small = np.exp(-privacy_loss)
    return np.asarray(clip * (upper + (1.0 - upper) * small) / (share * -np.expm1(-privacy_loss)))


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
