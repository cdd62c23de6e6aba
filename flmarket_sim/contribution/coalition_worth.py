"""What coalitions are worth by the error bound: minus the ERR of their purchase."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.aggregation.rule import AggregationRule, weights_in

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
AT_ONCE = 200_000  # numbers of one array of coalitions


def coalition_worth(
    rule: AggregationRule, error: MarketError, loss: Floats, size: Floats, member: Bools
) -> Floats:
    """(K, S) minus the errors of S coalitions (K, S, n) in K markets of losses and sizes (K, n).

    Data shares count all n owners. Nobody's error is infinite, so the empty coalition counts as the
    worst coalition of one seller.
    """
    markets, count, n = member.shape
    total, flat = np.empty(markets * count), member.reshape(-1, n)
    at_once = max(1, AT_ONCE // n)
    for first in range(0, len(flat), at_once):
        rows = slice(first, first + at_once)
        market = np.arange(markets * count)[rows] // count
        sold, sizes = np.where(flat[rows], loss[market], 0.0), size[market]
        weights = weights_in(rule, sold, sizes, error)
        total[rows] = error_bound_in(error, weights, sold, sizes).total
    nobody = ~member.any(axis=2)
    worst = worst_alone(rule, error, loss, size)[:, None] if nobody.any() else 0.0
    return np.where(nobody, worst, -total.reshape(markets, count))


def worst_alone(rule: AggregationRule, error: MarketError, loss: Floats, size: Floats) -> Floats:
    """(K,) what the worst coalition of one seller is worth."""
    markets, n = loss.shape
    alone = np.broadcast_to(np.eye(n, dtype=bool), (markets, n, n))
    worth = coalition_worth(rule, error, loss, size, alone)
    return np.asarray(np.where(loss > 0, worth, np.inf).min(axis=1))
