"""An aggregation rule as a convex problem: everybody who sells is heard, and nobody alone."""

from __future__ import annotations

import cvxpy as cp

from flmarket_sim.aggregation.convex_rule import ConvexRule


class WeightFloor(ConvexRule):
    """The least error bound with a floor under every seller's weight, and a pull to even weights.

    Every owner who sells has at least `floor` times the equal weight 1 / sellers. `evenness` is
    what the entropy of the weights is worth: 0.1 pays a tenth of the least error bound for one nat.
    """

    name = "weight-floor"

    def __init__(self, floor: float = 0.2, evenness: float = 0.0) -> None:
        if not 0 <= floor < 1:
            raise ValueError("floor must be at least 0 and below 1")
        self.floor, self.evenness = floor, evenness

    def problem(self, owners):
        entropy = cp.sum(cp.entr(owners.weight))
        equal = owners.parameter("equal", owners.n, nonneg=True)
        objective = owners.error_bound - self.evenness * entropy
        return objective, [owners.weight >= self.floor * equal]

    def parameter_values(self, market):
        return {"equal": market.sells / market.sells.sum()}
