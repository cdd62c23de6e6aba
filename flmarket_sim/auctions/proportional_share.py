"""Proportional share (Singer 2010): cheapest first, stop at the first who does not fit."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.all_in import all_in_limit
from flmarket_sim.auctions.auction import TRUTHFUL_FOR_STEPS, Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import Sorted
from flmarket_sim.auctions.market_scale import InScale
from flmarket_sim.auctions.ranking_value import RanksByValue
from flmarket_sim.owners.bids import BidBatch


class ProportionalShare(RanksByValue):
    """The longest cheap prefix wins, at the unit price min(B / S, the next unit valuation).

    `value` says what a unit is (ranking_value.py).
    """

    name = "proportional-share"
    formula = "the longest prefix by r_i = V_i / x_i with r_i S <= B; pay x_i min(B / S, next r)"
    reference = "Singer, Budget Feasible Mechanisms (FOCS 2010)"
    guarantees = TRUTHFUL_FOR_STEPS

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        market = InScale.of(bids.full_value, self.amounts(bids), budget)
        ranked = Sorted.by_unit_value(market.value, market.amount)
        sums = np.cumsum(ranked.amount, axis=1)
        won = np.logical_and.accumulate(sums <= all_in_limit(ranked, market.budget), axis=1)
        count = won.sum(axis=1)
        rows = np.arange(len(count))
        sold = np.where(count > 0, sums[rows, count - 1], np.inf)
        n = bids.shape[1]
        next_unit = np.where(count < n, ranked.unit_value[rows, np.minimum(count, n - 1)], np.inf)
        price = np.minimum(market.budget / sold, next_unit)
        return ranked.whole_sales(bids, won, market.in_money(ranked.amount * price[:, None]))
