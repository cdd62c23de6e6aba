"""A descending clock: the price of a unit of value falls until those who stay can be paid.

It is a deferred-acceptance auction (Milgrom and Segal 2020) with the budget rule of Ensthaler and
Giebe (2014). At the clock's price p an owner whose whole sale counts as x is offered min(p x, c B):
p for a unit, and never more than the share c (`cap`) of the budget B. Owners leave when they are
offered less than they ask, and never come back. The clock stops as soon as the offers to those who
are left fit the budget, and these offers are the payments.

Without the cap it would have the winners and payments of `proportional-share`, whose price
min(B / S, the unit valuation of the next) is where the clock stops. The cap makes the difference:
an owner who asks for more than c B leaves at the start, and not when the price has fallen so far
that most others have left before her.

A clock adds to truthfulness that it is weakly group-strategyproof for single-minded owners: no
coalition can make all of its members better off (docs/false-names.md). A member who helps others
at her own cost, and is paid for it behind the market's back, is another matter.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.auctions.auction import TRUTHFUL_FOR_STEPS, Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import Sorted
from flmarket_sim.auctions.market_scale import InScale
from flmarket_sim.auctions.ranking_value import RECORDS_LOSS, RanksByValue
from flmarket_sim.owners.bids import BidBatch

Ints = NDArray[np.int64]


class Clock(RanksByValue):
    """Whole sales at a falling price, until the money is enough for all who stay.

    `value` says what a unit is (ranking_value.py), and `cap` is the largest share of the budget
    that one owner is offered.
    """

    name = "clock"
    formula = "offer min(p x_i, c B) while p falls; stop when the offers to all who stay fit B"
    reference = "Milgrom and Segal, Clock Auctions (2020); Ensthaler and Giebe (2014)"
    guarantees = TRUTHFUL_FOR_STEPS

    def __init__(
        self, value: str = RECORDS_LOSS, cap: Annotated[float, Field(gt=0, le=1)] = 0.7
    ) -> None:
        super().__init__(value)
        self.cap = cap

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        market = InScale.of(bids.full_value, self.amounts(bids), budget)
        money, most = market.budget, self.cap * market.budget
        ranked = _stayers_first(market, most)
        count = _stay_to_the_end(ranked, money, most)
        won = np.arange(bids.shape[1]) < count[:, None]
        price = np.minimum(
            _affordable(ranked.amount * won, count, money, most), _next(ranked, count)
        )
        payment = np.minimum(price[:, None] * ranked.amount, most[:, None])
        return ranked.whole_sales(bids, won, market.in_money(payment))


def _stayers_first(market: InScale, most: Floats) -> Sorted:
    """Owners by the price at which they leave; those who ask for more than `most` leave at once."""
    asked = np.where(market.value > most[:, None], np.inf, market.value)
    return Sorted.by_unit_value(asked, market.amount)


def _stay_to_the_end(ranked: Sorted, budget: Floats, most: Floats) -> Ints:
    """(K,) how many owners are left when the clock stops.

    The first m owners are left while the price is between the unit valuations of m and m + 1. The
    clock stops there if their offers at the lower of the two fit. What they need grows with m, so
    the largest m that fits is found by halving.
    """
    markets, n = ranked.unit_value.shape
    rows, column = np.arange(markets), np.arange(n)
    fits, fails = np.zeros(markets, np.int64), np.full(markets, n + 1)
    while (fails - fits > 1).any():
        middle = (fits + fails) // 2
        price = ranked.unit_value[rows, np.maximum(middle, 1) - 1]
        with np.errstate(over="ignore"):
            offer = np.minimum(price[:, None] * ranked.amount, most[:, None])
        needed = np.where(column < middle[:, None], offer, 0.0).sum(axis=1)
        good = (needed <= budget) & np.isfinite(price)
        fits, fails = np.where(good, middle, fits), np.where(good, fails, middle)
    return fits


def _affordable(amount: Floats, count: Ints, budget: Floats, most: Floats) -> Floats:
    """(K,) the highest price at which the offers to `count` owners of these amounts fit the budget;
    infinite if they fit at any price.

    If the j largest are offered `most`, the others share the rest of the money in proportion. The
    right j is the first at which the next largest is not offered more than `most`.
    """
    largest_first = -np.sort(-amount, axis=1)
    capped = np.arange(amount.shape[1])
    rest = np.cumsum(largest_first[:, ::-1], axis=1)[:, ::-1]  # all but the j largest
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        price = np.maximum(budget[:, None] - capped * most[:, None], 0.0) / rest
        right = price * largest_first <= most[:, None]
    right &= capped < count[:, None]
    first = right.argmax(axis=1)
    rows = np.arange(len(amount))
    return np.where(right[rows, first], price[rows, first], np.inf)


def _next(ranked: Sorted, count: Ints) -> Floats:
    """(K,) the price at which the last owner who left did so; infinite if everybody stays."""
    n = ranked.unit_value.shape[1]
    following = ranked.unit_value[np.arange(len(count)), np.minimum(count, n - 1)]
    return np.where(count < n, following, np.inf)
