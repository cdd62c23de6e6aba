"""RandomSample: each half of the owners is offered the best posted ratios of the other half."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import TRUTHFUL_FOR_STEPS, Floats, Outcome, check_budget
from flmarket_sim.auctions.procurement.asked_in_scale import asked_in_scale
from flmarket_sim.auctions.procurement.posted_rule import PostedRule
from flmarket_sim.auctions.procurement.sales_in_turn import sell_in_turn
from flmarket_sim.auctions.procurement.stacked_draws import StackedDraws
from flmarket_sim.auctions.ranking_value import RECORDS_LOSS, RanksByValue
from flmarket_sim.owners.bids import BidBatch

Purse = Literal["halves", "shared"]


class RandomSample(RanksByValue):
    """Owners are split at random in two halves; the best rule of two posted ratios for one half and
    B / 2 (posted_rule.py) is used on the other half.

    `purse` says from which money the owners are paid:

    "halves"  each half has B / 2 of its own. The auction is universally truthful for single-minded
              owners: given the split, the order and the coins, none of which depend on reports, the
              offer to an owner is the least of her posted ratio times her amount, and of what those
              of her own half who come before her have left, and her own report enters only by the
              amount. An understated amount does not raise the offer, and whether she asks more or
              less than it changes only whether she takes it.
    "shared"  the second half is paid from what the first half has left of B, as in the simulation
              of the publication. More is bought, because a half that is offered too much by chance
              comes with one that is offered too little. It is not truthful: the reports of the
              second half make the rule of the first, and with it what is left.

    A half without owners, as in a market of one, posts nothing. `value` says what a unit is
    (ranking_value.py).
    """

    name = "random-sample"
    formula = "two random halves; each gets the best (p1, p2, f) of the other half and B / 2"
    reference = "Rubinstein and Zhao, Beyond Worst Case Analysis of Budget Feasible Mechanisms"
    guarantees = TRUTHFUL_FOR_STEPS

    def __init__(self, value: str = RECORDS_LOSS, purse: Purse = "halves") -> None:
        super().__init__(value)
        self.purse: Purse = purse
        if purse == "shared":
            self.guarantees = TRUTHFUL_FOR_STEPS | {"truthful": "none"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        return self.decide_draws(bids, budget, [rng])[0]

    def decide_draws(
        self, bids: BidBatch, budget: Floats, rngs: Sequence[np.random.Generator]
    ) -> list[Outcome]:
        """The outcome of `decide` with each of these generators, all in one pass."""
        budget = check_budget(bids, budget)
        draws = StackedDraws.of(rngs, bids.shape)
        market = asked_in_scale(bids, self.amounts(bids), budget)
        value, amount, money = map(draws.each, (market.value, market.amount, market.budget))
        sells, payment = sample_sales(value, amount, money, draws, self.purse)
        return draws.outcomes(bids, market, sells, payment)


def sample_sales(
    value: Floats, amount: Floats, budget: Floats, draws: StackedDraws, purse: Purse
) -> tuple[NDArray[np.bool_], Floats]:
    """(K, n) who sells, and payments, for owners who ask `value` for sales of `amount` (K, n)."""
    n, order, coin = value.shape[1], draws.order, draws.coin
    first = np.zeros(value.shape, np.bool_)
    np.put_along_axis(first, order[:, : n // 2], True, axis=1)
    half = budget / 2
    rules = [
        PostedRule.best(np.where(part, value, np.inf), amount, half) for part in (first, ~first)
    ]
    posted = np.where(first, rules[1].posted(coin), rules[0].posted(coin))
    if purse == "shared":
        return sell_in_turn(value, amount, posted, budget, order)
    sales = [
        sell_in_turn(np.where(part, value, np.inf), amount, posted, half, order)
        for part in (first, ~first)
    ]
    return sales[0][0] | sales[1][0], sales[0][1] + sales[1][1]
