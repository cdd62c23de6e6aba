"""Former algorithms of the package, which `scale` measures beside the present ones.

A measured process replaces the present algorithm by one of these.
"""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions import all_in_critical, greedy
from flmarket_sim.learning import partitions
from flmarket_sim.market import broker, owner
from flmarket_sim.perturbation.domains import MARGIN


def walks() -> None:
    """Walks of the greedy choice and of thresholds take every step."""
    greedy.STEPS = all_in_critical.STEPS = 10**9


def records_dealt_at_once() -> None:
    """Three 64-bit numbers for every record of the market."""

    def split_classes(class_counts, sizes, rng):
        labels = np.repeat(np.arange(len(class_counts)), class_counts)
        rng.shuffle(labels)
        cell = np.repeat(np.arange(len(sizes)), sizes) * len(class_counts) + labels
        return np.bincount(cell, minlength=len(sizes) * len(class_counts)).reshape(
            len(sizes), len(class_counts)
        )

    partitions.split_classes = split_classes


def copies_of_gradients() -> None:
    """Copies of all gradients at three points, and groups that ignore the width of the model."""
    from flmarket_sim.learning.torch_model import TorchModel

    def clip_l1(gradients, clip, in_place=False):
        norms = np.abs(gradients).sum(axis=1)
        limit = clip * MARGIN
        return gradients * np.where(norms > limit, limit / np.maximum(norms, limit), 1.0)[
            :, None
        ], norms

    build = TorchModel.__init__

    def narrow(self, cls, features, classes, options, seed):
        build(self, cls, features, classes, options, seed)
        self.width = features

    owner.clip_l1 = clip_l1
    broker.weighted_sum = lambda weights, gradients: weights @ np.stack(gradients)
    TorchModel.__init__ = narrow
