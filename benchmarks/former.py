"""How the package did some of its work before `scale` was measured: patched in by a measured process, to show what changed."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions import all_in_critical, greedy
from flmarket_sim.learning import partitions
from flmarket_sim.market import broker, owner
from flmarket_sim.privacy.clipping import MARGIN


def walks() -> None:
    """Every step of a greedy walk and of a threshold's walk is taken, however many there are."""
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
    """Absolute values, clipped gradients and a stack of those sent, each a copy of all; groups that ignore how wide a model is."""
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
