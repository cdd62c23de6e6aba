"""From the messages of a round to the delivered gradient, by the market's robust rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.robust.robust_rule import RobustRule, StatesBreakdown, combined
from flmarket_sim.aggregation.weighted_sum import WeightedSum, weighted_sum
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.schema import CombinationRecord

Floats = NDArray[np.float64]


class Combination(NamedTuple):
    """A gradient (D,), None in a market without learning, and what the log says about the rule that
    made it; nothing about the weighted sum."""

    gradient: Floats | None
    record: CombinationRecord | None


def combination(
    rule: RobustRule, sent: list[Floats], weights: Floats, variance: Floats, vector_bound: float
) -> Combination:
    """Combines g messages, none in a market without learning, of weights and total variances (g,).

    `vector_bound` is the error bound of their weighted sum.
    """
    if isinstance(rule, WeightedSum):
        return Combination(weighted_sum(weights, sent) if sent else None, None)
    gradient = departure = honest = None
    with plugin_errors("robust rule", rule.name):
        if sent:
            gradient = combined(rule, np.stack(sent), weights, variance)
            departure = float(np.square(gradient - weighted_sum(weights, sent)).sum())
            honest = (vector_bound**0.5 + departure**0.5) ** 2
        share = (
            float(rule.breakdown(weights, variance).share)
            if isinstance(rule, StatesBreakdown)
            else None
        )
    return Combination(
        gradient, CombinationRecord(departure=departure, honest_bound=honest, breakdown=share)
    )
