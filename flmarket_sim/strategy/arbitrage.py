"""A buyer who seeks arbitrage: she splits a purchase and combines the gradients.

The paper leaves open whether this pays. An owner who sells e_1, ..., e_k of privacy in k purchases
gives k gradients with independent noise. Their best combination has the precision 1 / V(e_1) + ...
+ 1 / V(e_k). With V ~ 1 / e^2 that is the variance of a single sale at sqrt(e_1^2 + ... + e_k^2),
which is less than e_1 + ... + e_k. So many small sales are worse than one large sale, unless prices
are convex enough. Owners either remember (past sales count: they ask
for the increase of their valuation, up to what is left of their privacy budget) or forget (each
purchase meets fresh owners; a broker that allows this sells more than they have).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.strategy.misreports import Floats

LEAST = 1e-9  # of a privacy budget: less is sold out


@dataclass(frozen=True)
class Purchase:
    """error_bound, spent and privacy_sold (K,) of all purchases together."""

    error_bound: Floats
    spent: Floats
    privacy_sold: Floats


def buy(
    auction: Any,
    truth: Profiles,
    budget: Floats,
    purchases: int,
    *,
    remember: bool = True,
    levels: int = 8,
    rule: str = "opt-aggr",
    error: MarketError | None = None,
) -> Purchase:
    """`budget` (K,) in `purchases` equal parts, in turn, from the same truthful owners.

    `error` is what the market counts; None is the paper's reading with L = 1.
    """
    counted = error or coordinate_error()
    precision = np.zeros(truth.shape)
    sold, squared = np.zeros(truth.shape), np.zeros(truth.shape)
    spent = np.zeros(truth.shape[0])
    shares = np.arange(1, levels + 1) / levels
    for number in range(purchases):
        before = sold if remember else np.zeros_like(sold)
        left = np.maximum(truth.privacy_budget - before, LEAST * truth.privacy_budget)
        base = truth.value(before)
        values = np.stack([truth.value(before + left * share) - base for share in shares], axis=2)
        values = np.maximum.accumulate(np.maximum(values, 0.0), axis=2)
        bids = BidBatch(values, left, truth.data_size, StatedValuations.of(truth.types))
        outcome = auction.decide(bids, budget / purchases, np.random.default_rng(number))
        loss = np.where(
            outcome.privacy_loss > 10 * LEAST * truth.privacy_budget, outcome.privacy_loss, 0.0
        )
        sold, squared = sold + loss, squared + loss**2
        precision += 1.0 / counted.variance(loss)
        spent += outcome.payment.sum(axis=1)
    effective = np.sqrt(squared)
    with np.errstate(divide="ignore"):
        together = MarketError(counted.kind, lambda _: 1.0 / precision, counted.radius)
        weights = weights_in(aggregation.create(rule), effective, truth.data_size, together)
        bound = error_bound_in(together, weights, effective, truth.data_size).total
    return Purchase(bound, spent, sold.sum(axis=1))


def price_of_the_same(
    auction: Any,
    truth: Profiles,
    budget: Floats,
    purchases: int,
    *,
    remember: bool = True,
    rule: str = "opt-aggr",
    error: MarketError | None = None,
) -> tuple[float, float]:
    """(budget ratio, spending ratio) of split purchases with the mean error bound of a single one.

    Splitting is cheaper where a ratio is below 1. The bisection varies a common factor of all
    budgets; the ratios are nan if 64 times the money is not enough.
    """
    single = buy(auction, truth, budget, 1, remember=remember, rule=rule, error=error)
    valid = np.isfinite(single.error_bound)
    if not valid.any():
        return float("nan"), float("nan")
    target = single.error_bound[valid].mean()

    def split_error(factor: float) -> tuple[float, float]:
        split = buy(
            auction, truth, factor * budget, purchases, remember=remember, rule=rule, error=error
        )
        return float(split.error_bound[valid].mean()), float(
            split.spent.sum()
        )  # infinite if one of them is invalid now

    low, high = 1 / 64, 64.0
    if split_error(high)[0] > target:
        return float("nan"), float("nan")
    for _ in range(40):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if split_error(middle)[0] > target else (low, middle)
    return float(high), split_error(high)[1] / float(single.spent.sum())
