"""The effects of reports on a market: error bounds, money, privacy and surplus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.auction import records_sold
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.valuation import covers
from flmarket_sim.strategy.misreports import Floats


@dataclass(frozen=True)
class MarketEffects:
    """All columns are (K,). Owners who would lose by their outcome decline it, as in the market.

    error_bound    by the reported records: the bound that the broker computes
    bound_of_data  the bound of the same weights for the records that owners truly have
    spent          money paid
    surplus        what is paid above the owners' true costs
    privacy_sold   the sum of the privacy losses
    """

    error_bound: Floats
    bound_of_data: Floats
    spent: Floats
    surplus: Floats
    privacy_sold: Floats


def effects_of(
    auction: Any,
    truth: Profiles,
    bids: BidBatch,
    budget: Floats,
    rule: str = "opt-aggr",
    error: MarketError | None = None,
) -> MarketEffects:
    """The effects of reports `bids` by owners of types `truth`, in one draw of the auction.

    `error` is what the market counts; None is the paper's reading with L = 1.
    """
    counted = error or coordinate_error()
    outcome = auction.decide(bids, budget, np.random.default_rng(0))
    value = truth.value(outcome.privacy_loss, records_sold(outcome, bids))
    accepts = covers(outcome.payment, value)
    loss, payment = (
        np.where(accepts, outcome.privacy_loss, 0.0),
        np.where(accepts, outcome.payment, 0.0),
    )
    weights = weights_in(aggregation.create(rule), loss, bids.data_size, counted)
    return MarketEffects(
        error_bound_in(counted, weights, loss, bids.data_size).total,
        error_bound_in(counted, weights, loss, truth.data_size).total,
        payment.sum(axis=1),
        (payment - np.where(accepts, value, 0.0)).sum(axis=1),
        loss.sum(axis=1),
    )
