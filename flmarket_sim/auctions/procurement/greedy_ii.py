"""Greedy-II: the best rule of two posted ratios, chosen with the market's own reports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.procurement.asked_in_scale import asked_in_scale
from flmarket_sim.auctions.procurement.posted_rule import PostedRule
from flmarket_sim.auctions.procurement.sales_in_turn import sell_in_turn
from flmarket_sim.auctions.procurement.stacked_draws import StackedDraws
from flmarket_sim.auctions.ranking_value import RanksByValue
from flmarket_sim.owners.bids import BidBatch


class GreedyII(RanksByValue):
    """Owners get one of two posted ratios by chance; ratios and chance are the best for this
    market (posted_rule.py).

    The rule keeps the budget on average. To keep it in every draw, owners are served in a random
    order and the money that is left limits each offer (sales_in_turn.py), so a little less is
    bought than the rule's mean. Who sells is paid at least what she asks for a whole sale.

    It is not truthful: the posted ratios depend on every report, and the marginal owner sets her
    own price. It is the full-information yardstick of `random-sample`. `value` says what a unit is
    (ranking_value.py).
    """

    name = "greedy-ii"
    formula = "p2 with the chance f, p1 otherwise: max (1 - f) u(p1) + f u(p2) within B"
    reference = "Rubinstein and Zhao, Beyond Worst Case Analysis of Budget Feasible Mechanisms"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        return self.decide_draws(bids, budget, [rng])[0]

    def decide_draws(
        self, bids: BidBatch, budget: Floats, rngs: Sequence[np.random.Generator]
    ) -> list[Outcome]:
        """The outcome of `decide` with each of these generators; the rule is the same for all."""
        budget = check_budget(bids, budget)
        draws = StackedDraws.of(rngs, bids.shape)
        market = asked_in_scale(bids, self.amounts(bids), budget)
        rule = PostedRule.best(market.value, market.amount, market.budget)
        value, amount, money = map(draws.each, (market.value, market.amount, market.budget))
        posted = rule.each(draws.each).posted(draws.coin)
        sells, payment = sell_in_turn(value, amount, posted, money, draws.order)
        return draws.outcomes(bids, market, sells, payment)
