"""A perturbation of its own: an owner sends the sign of one coordinate, and sometimes lies."""

import numpy as np

from flmarket_sim.perturbation.domains import in_domain
from flmarket_sim.perturbation.worst_pair import corner_pair


class RandomSign:
    """The sign of a random coordinate by randomised response: a message of five bytes."""

    name = "random-sign"
    domain = "linf"

    def prepare(self, gradients, clip=1.0):
        return in_domain(gradients, self.domain, clip)

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        count, dimension = gradients.shape
        place = rng.integers(0, dimension, count)  # tells nothing: it does not see the gradient
        value = gradients[np.arange(count), place] / clip
        sign = np.where(rng.random(count) < 0.5 + 0.5 * value, 1.0, -1.0)
        truth = rng.random(count) < 1.0 / (1.0 + np.exp(-privacy_loss))
        released = np.zeros(gradients.shape)
        size = clip * dimension / np.tanh(0.5 * privacy_loss)  # makes the mean the gradient
        released[np.arange(count), place] = np.where(truth, sign, -sign) * size
        return released

    def variance(self, privacy_loss, dimension, clip=1.0):
        with np.errstate(divide="ignore"):
            return (clip * dimension / np.tanh(0.5 * np.asarray(privacy_loss, float))) ** 2

    def message_bytes(self, dimension, privacy_loss):
        return 5  # a place and a sign

    def worst_pair(self, privacy_loss, dimension, clip=1.0):
        return corner_pair(dimension, clip, 0.0)  # which sign it is
