"""Posted price: one price for a unit of privacy on a record, first come first served."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.auctions.auction import TRUTHFUL_FOR_STEPS, Floats, Outcome, check_budget
from flmarket_sim.owners.bids import BidBatch


class PostedPrice:
    """Each owner in turn sells the share of her budget that suits her best, at one posted price.

    A sale pays `price` x privacy loss x records. Owners come in the order of the bids (in the
    market: of arrival), and the money that is left limits each sale. An owner chooses among the
    levels of her report and the largest loss that the money can buy. So no report of a step owner
    beats the truth; an owner whose value changes between two levels can gain a little by a smaller
    reported budget with a level at her optimum.
    """

    name = "posted-price"
    formula = "e_i = argmax of p d_i e - v_i(e) within the money that is left; pay p d_i e_i"
    reference = "a textbook baseline: one price for all"
    guarantees = TRUTHFUL_FOR_STEPS

    def __init__(self, price: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 2.0) -> None:
        self.price = price

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        markets, n = bids.shape
        unit_price = self.price * bids.data_size
        level = bids.privacy_budget[..., None] * (np.arange(1, bids.levels + 1) / bids.levels)
        gain = unit_price[..., None] * level - bids.values
        losses, payments = np.zeros((markets, n)), np.zeros((markets, n))
        left = budget.astype(float)
        rows = np.arange(markets)
        for i in range(n):
            largest = np.minimum(left / unit_price[:, i], bids.privacy_budget[:, i])
            open_gain = np.where(level[:, i] <= largest[:, None], gain[:, i], -1.0)
            best = open_gain.argmax(axis=1)
            best_gain, loss = open_gain[rows, best], level[rows, i, best]
            cap_gain = unit_price[:, i] * largest - reported_value(bids, i, largest)
            capped = cap_gain > best_gain
            loss = np.where(capped, largest, loss)
            sells = np.maximum(best_gain, cap_gain) >= 0
            losses[:, i] = np.where(sells & (largest > 0), loss, 0.0)
            payments[:, i] = np.minimum(unit_price[:, i] * losses[:, i], left)
            left = left - payments[:, i]
        return Outcome(losses, payments)


def reported_value(bids: BidBatch, i: int, loss: Floats) -> Floats:
    """(K,) owner i's reported value of `loss`, that of the next higher level: steps stay steps."""
    place = np.ceil(loss / bids.privacy_budget[:, i] * bids.levels - 1e-12).astype(int)
    value = bids.values[np.arange(len(loss)), i, np.clip(place - 1, 0, bids.levels - 1)]
    return np.where(loss > 0, value, 0.0)
