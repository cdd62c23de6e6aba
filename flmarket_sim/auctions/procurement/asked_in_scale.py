"""A procurement market in numbers near one, in which everybody asks for something."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.market_scale import NEGLIGIBLE, InScale
from flmarket_sim.owners.bids import BidBatch

Floats = NDArray[np.float64]


def asked_in_scale(bids: BidBatch, amount: Floats, budget: Floats) -> InScale:
    """The market in scale (market_scale.py), with a least price for every whole sale.

    Marginal owners set prices here. Beside a large budget, what an owner asks can be rounded to 0,
    and at a price of 0 she would sell at a loss. So whoever asks for less than the negligible part
    2^-1000 of the budget counts as asking for that much, whatever she asks.
    """
    market = InScale.of(bids.full_value, amount, budget)
    return InScale(
        np.maximum(market.value, NEGLIGIBLE), market.amount, market.budget, market.exponent
    )
