"""The messages between participants, who share nothing else.

A message holds only what its receiver may know. The arithmetic behind messages is batched: `row` or
`slot` is a message's row in the tables of the round. So a thousand bids are one array, and still a
thousand messages, each with its own time. No message holds a table (`ReportColumns`, `Offers`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.market.mail import Inbox, Letter
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.stated_valuation import StatedValuations

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Announcement(NamedTuple):
    """Buyer to broker, and broker to each asked owner: an auction with this budget is open."""

    buyer: int
    round: int
    budget: float
    parameters: Floats | None
    reply: Letter | None


class ReportColumns(NamedTuple):
    """The bids of a cohort: values (n, M), privacy_budget (n,), data_size (n,).

    The valuations `stated` (n,) stay with the owners: a bid has its table only, and who is asked in
    turn answers by the valuation that she has or pretends to have.
    """

    values: Floats
    privacy_budget: Floats
    data_size: Floats
    stated: StatedValuations

    def batch(self) -> BidBatch:
        """The bids as one market, with what their owners could state."""
        return BidBatch(
            self.values[None], self.privacy_budget[None], self.data_size[None], self.stated.at(None)
        )

    def at(self, rows: Any) -> ReportColumns:
        return ReportColumns(
            self.values[rows], self.privacy_budget[rows], self.data_size[rows], self.stated.at(rows)
        )


class BidMessage(NamedTuple):
    """Owner to broker: money asked at each level (M,), largest privacy loss, number of records."""

    slot: int
    values: Floats
    privacy_budget: float
    data_size: float
    reply: Letter


class Offers(NamedTuple):
    """The auction's outcome for the k bids in time: row j is the bid of slot slots[j]."""

    slots: Ints
    privacy_loss: Floats
    payment: Floats


class Allocation(NamedTuple):
    """Broker to each bidder: what she would sell, and what she would get."""

    row: int
    privacy_loss: float
    payment: float


class MenuMessage(NamedTuple):
    """Broker to the owner whose turn it is: a menu. She takes one option or none, and answers to
    `inbox`. `offer` has losses, payments, and the money that is left."""

    row: int
    offer: Any
    inbox: Inbox


class Decision(NamedTuple):
    """Owner to broker: whether she will deliver, at which privacy loss and payment."""

    row: int
    slot: int
    accepted: bool
    privacy_loss: float
    payment: float
    reply: Letter


class Broadcast(NamedTuple):
    """Broker to each owner who accepted: the parameters at which she computes her gradient.

    They are None in a market without learning.
    """

    parameters: Floats | None


class GradientMessage(NamedTuple):
    """Owner to broker: her perturbed gradient (D,); None in a market without learning."""

    row: int
    slot: int
    gradient: Floats | None
    reply: Letter


class RoundCounts(NamedTuple):
    """How many owners were asked, bid, won, accepted and delivered."""

    asked: int
    bids: int
    winners: int
    accepted: int
    delivered: int


class Bounds(NamedTuple):
    """How far a delivered gradient can be off, by the losses and records behind it.

    error_bound = variance + squared_bias is the bound that the scenario asks for, named by
    `error_kind`. The log has both kinds. All are infinite, or unknown, for an invalid gradient.
    """

    error_kind: int
    error_bound: float = math.inf
    variance: float = math.inf
    squared_bias: float = math.nan
    vector_bound: float = math.inf
    coordinate_bound: float = math.inf


class DeliveryMessage(NamedTuple):
    """Broker to buyer: the aggregated gradient if there is one, its error bound, and its price."""

    gradient: Floats | None
    owed: float
    counts: RoundCounts
    bounds: Bounds
    reply: Letter


class Payment(NamedTuple):
    """Buyer to broker, and broker to each owner who delivered."""

    amount: float
