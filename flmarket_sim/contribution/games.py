"""The two games of a round: by the error bound, and by the loss of the model on validation
records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.aggregation.robust.robust_rule import RobustRule, combined
from flmarket_sim.aggregation.rule import AggregationRule, weights_in
from flmarket_sim.aggregation.weighted_sum import WeightedSum, weighted_sum
from flmarket_sim.contribution.coalition_worth import coalition_worth

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ErrorGame:
    """A coalition is worth minus the error bound of its purchase (`coalition_worth`).

    privacy_loss, data_size  (b,) of all bidders; a loss of 0 for who did not sell
    sellers                  (n,) places of the players among them
    """

    rule: AggregationRule
    error: MarketError
    privacy_loss: Floats
    data_size: Floats
    sellers: Ints

    @property
    def players(self) -> int:
        return len(self.sellers)

    def among_bidders(self, member: Bools) -> Bools:
        """(S, b) coalitions (S, n) as places among the bidders."""
        whole = np.zeros((len(member), len(self.privacy_loss)), bool)
        whole[:, self.sellers] = member
        return whole

    def worth(self, member: Bools) -> Floats:
        whole = self.among_bidders(member)[None]
        loss, size = self.privacy_loss[None], self.data_size[None]
        return np.asarray(coalition_worth(self.rule, self.error, loss, size, whole)[0])


@dataclass(frozen=True, eq=False)
class LossGame:
    """A coalition is worth minus the loss of the model after a step with its messages alone.

    purchase   who sold what; `error` there is what the weights of the aggregation rule depend on
    vector     the error of whole gradients
    robust     the rule that combines messages
    messages   (n, D) of the sellers
    loss_of    the validation loss of the model after a step with a gradient (D,) whose squared
               error has this bound; None is no step. The empty coalition makes none.
    """

    purchase: ErrorGame
    vector: MarketError
    robust: RobustRule
    messages: Floats
    loss_of: Callable[[Floats | None, float], float]

    @property
    def players(self) -> int:
        return self.purchase.players

    def worth(self, member: Bools) -> Floats:
        bought, sellers = self.purchase, self.purchase.sellers
        loss = np.where(bought.among_bidders(member), bought.privacy_loss, 0.0)
        size = np.broadcast_to(bought.data_size, loss.shape)
        weights = weights_in(bought.rule, loss, size, bought.error)
        bound = error_bound_in(self.vector, weights, loss, size).total
        variance = self.vector.variance(bought.privacy_loss[sellers])
        worth = np.empty(len(member))
        for s, inside in enumerate(member):
            if not inside.any():
                worth[s] = -self.loss_of(None, np.inf)
                continue
            part, weight = self.messages[inside], weights[s, sellers[inside]]
            if isinstance(self.robust, WeightedSum):
                gradient = weighted_sum(weight, part)
            else:
                gradient = combined(self.robust, part, weight, variance[inside])
            worth[s] = -self.loss_of(gradient, float(bound[s]))
        return worth
