"""An auction: half of the owners only set the price, the other half may sell at it."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions import Outcome


class SampledPrice:
    """A random half sets the unit price; the others sell at it in turn while money is left.

    An owner's amount is x = d eb, and her unit valuation is V / x. The price is a quantile of the
    unit valuations in the sample. Owners of the sample sell nothing, and the sellers' reports do
    not change the price, so a single-minded owner cannot gain by a misreport.
    """

    name = "sampled-price"
    guarantees = {
        "truthful": "single-minded",
        "individually_rational": "any",
        "budget_feasible": "any",
    }

    def __init__(self, quantile: float = 0.7) -> None:
        self.quantile = quantile

    def decide(self, bids, budget, rng):
        markets, n = bids.shape
        draws = rng.random(bids.shape)  # the same numbers whatever the bids are
        order = draws.argsort(axis=1)
        loss, payment = np.zeros(bids.shape), np.zeros(bids.shape)
        if n < 2:
            return Outcome(loss, payment)
        amount = bids.data_size * bids.privacy_budget
        sample, sellers = order[:, : n // 2], order[:, n // 2 :]
        unit_values = np.take_along_axis(bids.full_value / amount, sample, axis=1)
        price = np.quantile(unit_values, self.quantile, axis=1)
        money = np.array(budget, dtype=np.float64)
        market = np.arange(markets)
        for owner in sellers.T:  # one seller of every market at a time
            offer = np.minimum(price * amount[market, owner], money)
            sells = offer >= bids.full_value[market, owner]
            loss[market, owner] = np.where(sells, bids.privacy_budget[market, owner], 0.0)
            payment[market, owner] = np.where(sells, offer, 0.0)
            money -= payment[market, owner]
        return Outcome(loss, payment)
