"""The piecewise mechanism on a few sampled coordinates (Wang et al. 2019).

Of D coordinates in [-C, C] an owner sends k, chosen at random, each at privacy loss e / k and times
D / k; k = e / 2.5 rounded down, at least 1. For one coordinate t in [-1, 1] at loss e, with
z = exp(e / 2) and S = (z + 1) / (z - 1), the release lies in [-S, S]. It is uniform in an interval
of length S - 1 around S t with chance z / (z + 1), and uniform outside otherwise. The interval is

    [l, l + S - 1],   l = (S + 1) t / 2 - (S - 1) / 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.perturbation.domains import Domain, in_domain
from flmarket_sim.perturbation.perturbation import LARGEST, checked_losses, variance_from
from flmarket_sim.perturbation.worst_pair import WorstPair, corner_pair

Floats = NDArray[np.float64]
LOSS_OF_ONE = 2.5  # the privacy loss that is worth another coordinate (Wang et al. 2019)


class Piecewise:
    """A few sampled coordinates, each by the piecewise mechanism (Wang et al. 2019)."""

    name = "piecewise"
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
        dimension = gradients.shape[1]
        sampled = coordinates(losses, dimension)
        released = np.zeros(gradients.shape)
        for number in np.unique(sampled):
            rows = np.flatnonzero(sampled == number)
            places = _places(len(rows), dimension, int(number), rng)
            values = gradients[rows[:, None], places] / clip
            each = np.minimum(losses[rows] / number, LARGEST)
            sent = one_coordinate(values, each[:, None], rng)
            released[rows[:, None], places] = sent * (clip * dimension / number)
        return released

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        """The sum over coordinates of (D / k) E[x^2] - t^2: largest at the corners of the box."""
        loss = np.asarray(privacy_loss, np.float64)
        positive = loss[loss > 0]
        sampled = coordinates(positive, dimension)
        less = np.expm1(0.5 * np.minimum(positive / sampled, LARGEST))  # exp(e / 2k) - 1
        of_one = 1.0 / less + (less + 4.0) / (3.0 * less**2)
        each = dimension / sampled * (of_one + 1.0) - 1.0
        return variance_from(loss, clip**2 * dimension * each)

    def message_bytes(self, dimension: int, privacy_loss: float) -> int:
        """A number and its place for each sampled coordinate."""
        return 12 * int(coordinates(np.array([privacy_loss]), dimension)[0])

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """For one sampled coordinate, D times a value of at least l(1) = 1: chances z / (z + 1) and
        exp(-e) times that. For several, sums tell less than all values, and no threshold is known.
        """
        one = coordinates(np.array([privacy_loss]), dimension)[0] == 1
        return corner_pair(dimension, clip, clip * dimension if one else None)


def coordinates(privacy_loss: Floats, dimension: int) -> NDArray[np.int64]:
    """k: how many coordinates an owner sends."""
    return np.clip(np.floor(privacy_loss / LOSS_OF_ONE), 1, dimension).astype(np.int64)


def _places(count: int, dimension: int, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count, number) different coordinates for each row."""
    if number == 1:
        return rng.integers(0, dimension, (count, 1))
    return np.stack([rng.choice(dimension, number, replace=False) for _ in range(count)])


def one_coordinate(values: Floats, privacy_loss: Floats, rng: np.random.Generator) -> Floats:
    """Releases of numbers in [-1, 1], each at its loss (the two shapes broadcast)."""
    z = np.exp(0.5 * privacy_loss)
    size = (z + 1.0) / (z - 1.0)
    low = 0.5 * (size + 1.0) * values - 0.5 * (size - 1.0)
    uniform, place = rng.random(values.shape), rng.random(values.shape)
    inside = uniform < z / (z + 1.0)
    within = low + place * (size - 1.0)
    outside = -size + place * (size + 1.0)  # the two outer parts, joined
    outside = np.where(outside >= low, outside + size - 1.0, outside)
    return np.where(inside, within, outside)
