"""Gravin-3: pruning, then the more valuable group at the full price and the other for the rest."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.procurement.asked_in_scale import asked_in_scale
from flmarket_sim.auctions.procurement.pruning import Pruned
from flmarket_sim.auctions.ranking_value import RanksByValue
from flmarket_sim.owners.bids import BidBatch


class Gravin3(RanksByValue):
    """The deterministic mechanism with a third of the fractional optimum (Gravin, Jin, Lu and Zhang
    2020).

    Pruning (pruning.py) leaves owners S and a unit price p. The more valuable one of the groups
    {i*} and S without i*, of value M, is offered v_i p each. The other one, of value m <= M, shares
    the rest of the budget: v_i q each, where q = (B - M p) / m. Who asks for no more than her offer
    sells all and is paid the offer.

    It buys a third of the fractional optimum over owners who ask for at most B. Let V = M + m and
    b = B / p, which is at most V. If owners of value R <= m decline, they ask for more than R q, so
    the optimum is at most V + b - R q / p, and q / p = 1 - (V - b) / m. Three times V - R less this
    bound is (V - 2 R) + (V - b) (1 - R / m), which is at least 0.

    For public values no false price gains (pruning.py). In this market an owner can understate her
    value, by a smaller privacy budget or fewer records, and that sometimes gains. So the auction is
    not declared truthful.

    The abstract of the publication states the ratio. Its text was not at hand: the second step and
    both proofs are this project's. Buying only the more valuable group, as the mechanism is
    sometimes told, does not buy a third: of two owners of value 1 who ask nothing and two of value
    1 and ratio B / 1.9 it buys 1, and the fractional optimum is 3.9. `value` says what v counts
    (ranking_value.py).
    """

    name = "gravin-3"
    formula = "pay v_i p to the more valuable of {i*} and S - i*, v_i (B - M p) / m to the other"
    reference = "Gravin, Jin, Lu and Zhang, Optimal Budget-Feasible Mechanisms (2020)"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        market = asked_in_scale(bids, self.amounts(bids), budget)
        pruned = Pruned.of(market.value, market.amount, market.budget)
        return pruned.sales(bids, market, pruned.price, pruned.rest)
