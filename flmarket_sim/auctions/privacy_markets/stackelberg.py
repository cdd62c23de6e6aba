"""A Stackelberg price: one price for all, the highest at which what owners offer can be paid."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import TRUTHFUL_FOR_STEPS, Floats, Outcome, check_budget
from flmarket_sim.auctions.market_scale import InScale
from flmarket_sim.auctions.privacy_markets.lower_hull import hull_slopes
from flmarket_sim.owners.bids import BidBatch


class Stackelberg:
    """The buyer leads with a price p for a unit of privacy on a record, and owners follow.

        e_i(p) = argmax over the levels of her report of p d_i e - v_i(e),
        p the largest price with sum_i p d_i e_i(p) <= B

    An owner who is indifferent sells the least that she may, so that there is a largest price;
    where owners tie at the lowest ask and B does not pay for all of them, nobody sells. The price
    is exact: e_i(p) changes at the slopes of the convex hull of her table only, and between two
    such prices everybody sells the same. Prices of this kind lead in many papers on incentives for
    federated learning with a Stackelberg game, for example QI-DPFL, "Quality-Aware and
    Incentive-Boosted Federated Learning with Differential Privacy" (2024); the buyers of these
    papers weigh error against money and have no budget. In such a game the price is set before
    anybody acts, and costs are known or answered to. Here the price depends on reports, so an owner
    who can sell a part may raise it by offering less. For single-minded owners the rule is that of
    `proportional-share`, up to ties, and none of them can gain.
    """

    name = "stackelberg"
    formula = "e_i(p) = argmax of p d_i e - v_i(e); the largest p with sum of p d_i e_i(p) <= B"
    reference = "the leader's price of Stackelberg games, as in QI-DPFL (2024)"
    guarantees = TRUTHFUL_FOR_STEPS

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        levels = bids.levels
        market = InScale.of(bids.full_value, bids.data_size * bids.privacy_budget, budget)
        share = np.arange(levels + 1) / levels
        limit = _prices_of_levels(bids, market, share)
        price = _largest_price(limit, market, share)
        sells = limit < price[:, None, None]
        level = np.where(sells, np.arange(1, levels + 1), 0).max(axis=2)
        payment = price[:, None] * (market.amount * share[level])
        payment = market.in_money(np.where(level > 0, payment, 0.0))
        return Outcome(bids.privacy_budget * share[level], payment)


def _prices_of_levels(bids: BidBatch, market: InScale, share: Floats) -> Floats:
    """(K, n, M) the price above which each level is better than those below it."""
    with np.errstate(over="ignore", divide="ignore"):
        table = np.ldexp(bids.values, -market.exponent[:, None, None])
        table = np.concatenate([np.zeros((*bids.shape, 1)), table], axis=2)
        limit = hull_slopes(share, table) / market.amount[..., None]
    return np.where(np.isfinite(market.value)[..., None], limit, np.inf)


def _largest_price(limit: Floats, market: InScale, share: Floats) -> Floats:
    """(K,) the largest price at which all that is offered below it can be paid; 0 if there is none.

    Offers are added in the order of their prices. With the first j of them sold the price may be
    B / A_j, A_j being their amount, as long as this is not above the price of the next.
    """
    corner = np.isfinite(limit)
    end = np.where(corner, share[1:], 0.0)
    before = np.maximum.accumulate(np.pad(end, ((0, 0), (0, 0), (1, 0)))[..., :-1], axis=2)
    width = np.where(corner, (end - before) * market.amount[..., None], 0.0)
    markets = len(limit)
    order = np.argsort(limit.reshape(markets, -1), axis=1, kind="stable")
    ranked = np.take_along_axis(limit.reshape(markets, -1), order, 1)
    amount = np.cumsum(np.take_along_axis(width.reshape(markets, -1), order, 1), axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        count = (ranked * amount < market.budget[:, None]).sum(axis=1)
    rows, places = np.arange(markets), ranked.shape[1]
    following = np.where(count < places, ranked[rows, np.minimum(count, places - 1)], np.inf)
    sold = np.where(count > 0, amount[rows, np.maximum(count, 1) - 1], np.inf)
    return np.where(count > 0, np.minimum(following, market.budget / sold), 0.0)
