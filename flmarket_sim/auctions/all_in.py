"""All-in (paper, appendix B): whole budgets at one unit price that spends everything."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import Sorted, admit
from flmarket_sim.auctions.market_scale import InScale
from flmarket_sim.auctions.ranking_value import RanksByValue
from flmarket_sim.owners.bids import BidBatch


def all_in_limit(ranked: Sorted, budget: Floats) -> Floats:
    """Place j is admitted when r_j (S + x_j) <= B, that is when S + x_j <= B / r_j.

    An owner whose unit valuation is infinite is never admitted.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        limit = np.where(ranked.unit_value > 0, budget[:, None] / ranked.unit_value, np.inf)
    return np.where(ranked.unit_value < np.inf, limit, -1.0)


class AllIn(RanksByValue):
    """All-in as published: the cheapest owners sell whole budgets at one unit price B / S.

    The paper's proposition says that the auction is truthful. It is not: a loser who bids near zero
    can displace a large owner and take over the budget (docs/theory.md, section 2). The option
    `value` replaces the paper's unit, records times privacy loss (ranking_value.py).
    """

    name = "all-in"
    formula = "admit by r_i = V_i / x_i while r_i (S + x_i) <= B; pay B x_i / S"
    reference = "Zheng, Cao, Yoshikawa, Li and Yan, FL-Market (IEEE BigData 2022), appendix B"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}
    claims = {"truthful": "single-minded"}  # the paper's proposition

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        market = InScale.of(bids.full_value, self.amounts(bids), budget)
        ranked = Sorted.by_unit_value(market.value, market.amount)
        won = admit(ranked.amount, all_in_limit(ranked, market.budget))
        sold = np.where(won, ranked.amount, 0.0)
        total = sold.sum(axis=1, keepdims=True)
        share = np.divide(sold, total, out=np.zeros_like(sold), where=total > 0)
        return ranked.whole_sales(bids, won, market.in_money(share * market.budget[:, None]))
