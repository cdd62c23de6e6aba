"""FairQuery (Ghosh and Roth 2011), adapted to privacy budgets (docs/theory.md, section 2)."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.owners.bids import BidBatch


class FairQuery:
    """The k cheapest owners sell the same privacy loss at the same price.

    The loss is max(eb) / (n - k), the price min(B / k, next V). k is the largest number below n
    with V_(k) <= B / k and k budgets that are large enough. A misreported privacy budget can change
    k, so the auction is truthful in the valuation only.
    """

    name = "fair-query"
    formula = "e = max(eb) / (n - k) for the k cheapest, V_k <= B / k; pay min(B / k, V_(k+1))"
    reference = "Ghosh and Roth, Selling Privacy at Auction (EC 2011)"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        markets, n = bids.shape
        losses, payments = np.zeros((markets, n)), np.zeros((markets, n))
        if n < 2:
            return Outcome(losses, payments)
        order = np.argsort(bids.full_value, axis=1, kind="stable")
        value = np.take_along_axis(bids.full_value, order, axis=1)
        smallest = np.minimum.accumulate(
            np.take_along_axis(bids.privacy_budget, order, axis=1), axis=1
        )
        k = np.arange(1, n)
        loss = bids.privacy_budget.max(axis=1, keepdims=True) / (n - k)
        possible = (value[:, :-1] <= budget[:, None] / k) & (smallest[:, :-1] >= loss)
        count = np.where(possible, k, 0).max(axis=1)
        rows = np.flatnonzero(count)
        chosen = count[rows]
        price = np.minimum(budget[rows] / chosen, value[rows, chosen])
        wins = np.arange(n) < chosen[:, None]
        sorted_loss = np.where(wins, loss[rows, chosen - 1][:, None], 0.0)
        sorted_payment = np.where(wins, price[:, None], 0.0)
        losses[rows[:, None], order[rows]] = sorted_loss
        payments[rows[:, None], order[rows]] = sorted_payment
        return Outcome(losses, payments)
