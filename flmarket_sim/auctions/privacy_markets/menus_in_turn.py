"""Menus that no report can change, served in the order of the bids while the money lasts.

An owner gets the offer of her menu that is best for her by her report: the valuation that the
report states, or else its table, rounded up (learned/favourite.py). "Nothing for nothing" is on
every menu, and offers that the money left does not cover are taken off. So whatever the menus are,
the sale is truthful and individually rational for owners of any valuation, and it keeps the budget.
The menus themselves may depend on public facts only: the budget, and sizes that the broker has
certified.
"""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome
from flmarket_sim.auctions.learned.favourite import ON_A_LEVEL, Reading
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.family_table import STEP
from flmarket_sim.owners.stated_valuation import TABLE
from flmarket_sim.owners.valuation import unit_value


def sold_from_menus(bids: BidBatch, loss: Floats, payment: Floats, budget: Floats) -> Outcome:
    """The favourites of all owners from menus of L offers, loss and payment (K, n, L).

    An offer of no loss, or of a payment that is not finite, is none. Of equally good offers an
    owner gets the first.
    """
    markets, n = bids.shape
    reading = Reading.of(bids)
    sold, paid, left = np.zeros((markets, n)), np.zeros((markets, n)), np.array(budget)
    rows = np.arange(markets)
    for i in range(n):
        offer, price = loss[:, i], payment[:, i]
        cost = _cost(reading, i, offer)
        open_offer = (offer > 0) & (offer <= bids.privacy_budget[:, i, None])
        open_offer &= np.isfinite(price) & (price <= left[:, None]) & (price >= cost)
        utility = np.where(open_offer, price - np.where(open_offer, cost, 0.0), -1.0)
        best = utility.argmax(axis=1)
        takes = open_offer[rows, best]
        sold[:, i] = np.where(takes, offer[rows, best], 0.0)
        paid[:, i] = np.where(takes, price[rows, best], 0.0)
        left = np.maximum(left - paid[:, i], 0.0)
    return Outcome(sold, paid)


def _cost(reading: Reading, i: int, loss: Floats) -> Floats:
    """(K, L) what owner i reports that losses cost her; infinite beyond any number."""
    bids, family = reading.bids, reading.stated.family[:, i, None]
    known = np.broadcast_to(np.where(family == TABLE, STEP, family), loss.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        stated = reading.stated.scale[:, i, None] * unit_value(known, loss)
        place = np.ceil(loss / bids.privacy_budget[:, i, None] * bids.levels - ON_A_LEVEL)
    level = np.clip(place, 1, bids.levels).astype(np.int64) - 1
    table = np.take_along_axis(bids.values[:, i], level, axis=1)
    return np.where(family == TABLE, table, stated)
