"""The weighted median of every coordinate."""

from __future__ import annotations

import numpy as np

from flmarket_sim.aggregation.robust.robust_rule import Breakdown, Floats, standardised
from flmarket_sim.aggregation.weighted_sum import column_parts

HALF = 0.5
ROUNDING = 1e-12


class CoordinateMedian:
    """In every coordinate the weighted median of the messages.

    Yin, Chen, Kannan and Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal
    Statistical Rates" (ICML 2018). Weights enter as standardised weights l_i s_i: the median is a
    value with at most half of them below it and at most half above. If a value has exactly half of
    them on one side, the median is the middle between it and the next.
    """

    name = "coordinate-median"

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        return weighted_medians(messages, standardised(weights, variance))

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown:
        return Breakdown(standardised(weights, variance), HALF)


def weighted_medians(values: Floats, weights: Floats) -> Floats:
    """(D,) weighted medians of the columns of values (n, D), for weights (n,) with the sum 1."""
    counts = weights > 0
    values, weights = values[counts], weights[counts]
    medians = np.empty(values.shape[1])
    for part in column_parts(values.shape[1]):
        order = np.argsort(values[:, part], axis=0, kind="stable")
        ranked = np.take_along_axis(values[:, part], order, 0)
        below = np.cumsum(weights[order], axis=0)
        below[-1] = 1.0  # whatever rounding has made of the sum
        lower = (below >= HALF - ROUNDING).argmax(axis=0)
        upper = (below > HALF + ROUNDING).argmax(axis=0)
        columns = np.arange(ranked.shape[1])
        medians[part] = 0.5 * ranked[lower, columns] + 0.5 * ranked[upper, columns]
    return medians
