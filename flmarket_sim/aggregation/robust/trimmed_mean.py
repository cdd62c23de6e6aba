"""The weighted mean of every coordinate without its extremes."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.aggregation.robust.robust_rule import Breakdown, Floats
from flmarket_sim.aggregation.weighted_sum import column_parts


class TrimmedMean:
    """In every coordinate the weighted mean without a share `trim` of the weight at either end.

    Yin, Chen, Kannan and Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal
    Statistical Rates" (ICML 2018). What is cut is weight and not messages: a message at the cut
    keeps the part of its weight that lies within. Noise does not standardise anything here. Values
    are compared as they are, because what an extreme value does to a mean is its weight times its
    size, and noisy messages, which are extreme most often, have little weight to lose.
    """

    name = "trimmed-mean"

    def __init__(self, trim: Annotated[float, Field(ge=0, lt=0.5)] = 0.2) -> None:
        self.trim = trim

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        counts = weights > 0
        messages, weights = messages[counts], weights[counts] / weights.sum()
        mean = np.empty(messages.shape[1])
        for part in column_parts(messages.shape[1]):
            order = np.argsort(messages[:, part], axis=0, kind="stable")
            ranked, weight = np.take_along_axis(messages[:, part], order, 0), weights[order]
            end = np.cumsum(weight, axis=0)
            inner = np.minimum(end, 1.0 - self.trim) - np.maximum(end - weight, self.trim)
            kept = np.maximum(inner, 0.0)
            mean[part] = (kept * ranked).sum(axis=0) / kept.sum(axis=0)
        return mean

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown:
        return Breakdown(weights, self.trim)
