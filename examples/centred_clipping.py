"""A robust rule: messages are shortened around their median, and averaged."""

from __future__ import annotations

import numpy as np

from flmarket_sim.aggregation.robust.coordinate_median import CoordinateMedian
from flmarket_sim.aggregation.robust.robust_rule import Breakdown, noise_scales


class CentredClipping:
    """The weighted mean of messages that are brought within `radius` noise scales of the median.

    It is one step of Karimireddy, He and Jaggi, "Learning from History for Byzantine Robust
    Optimization" (ICML 2021), from the coordinate median on. The scale of a message is the root of
    its variance, so that noisy owners are not shortened for their noise.
    """

    name = "centred-clipping"

    def __init__(self, radius: float = 2.0) -> None:
        if not radius > 0:
            raise ValueError("radius must be positive")
        self.radius = radius

    def combine(self, messages, weights, variance):
        centre = CoordinateMedian().combine(messages, weights, variance)
        apart = messages - centre
        distance = np.sqrt(np.square(apart).sum(axis=1))
        scale = noise_scales(variance) * np.sqrt(variance.mean() or 1.0)
        kept = np.minimum(1.0, self.radius * scale / np.where(distance > 0, distance, 1.0))
        return centre + (weights * kept) @ apart

    def breakdown(self, weights, variance) -> Breakdown:
        return CoordinateMedian().breakdown(weights, variance)
