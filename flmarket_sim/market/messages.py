"""What participants say to each other. They share nothing else.

Numbers travel in batches: a message names a row of a table that its sender made for the whole round, so that a thousand bids
are one array and still a thousand messages, each with its own time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.market.mail import Inbox, Letter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Announcement(NamedTuple):
    """Buyer to broker, and broker to each asked owner: an auction with this budget is open."""

    buyer: int
    round: int
    budget: float
    parameters: Floats | None
    reply: Letter | None


class Reports(NamedTuple):
    """The bids of the owners asked in a round: values (n, M), privacy_budget (n,), data_size (n,)."""

    values: Floats
    privacy_budget: Floats
    data_size: Floats


class BidMessage(NamedTuple):
    """Owner to broker: her bid is row `slot` of `reports`."""

    slot: int
    reports: Reports
    reply: Letter


class Offers(NamedTuple):
    """The auction's outcome for the k bids that came in time: the bid of row j is that of slot slots[j]."""

    slots: Ints
    privacy_loss: Floats
    payment: Floats


class Allocation(NamedTuple):
    """Broker to each bidder: what you would sell and get is row `row` of `offers`."""

    row: int
    offers: Offers


class MenuMessage(NamedTuple):
    """Broker to the owner whose turn it is: take an option of the menu, or nothing, and answer to `inbox`."""

    row: int
    offer: Any
    inbox: Inbox


class Decision(NamedTuple):
    """Winner to broker: I will deliver, or I will not."""

    row: int
    slot: int
    accepted: bool
    reply: Letter


class Broadcast(NamedTuple):
    """Broker to everybody who accepted: compute a gradient at these parameters. None in a market without learning."""

    parameters: Floats | None
    offers: Offers


class GradientMessage(NamedTuple):
    """Owner to broker: her perturbed gradient (D,), None in a market without learning."""

    row: int
    slot: int
    gradient: Floats | None
    reply: Letter


class RoundCounts(NamedTuple):
    """How many were asked, bid, won, accepted and delivered."""

    asked: int
    bids: int
    winners: int
    accepted: int
    delivered: int


class DeliveryMessage(NamedTuple):
    """Broker to buyer: the aggregated gradient, if there is one, how good it is, and what it costs."""

    gradient: Floats | None
    owed: float
    counts: RoundCounts
    error_bound: float
    variance: float
    squared_bias: float
    reply: Letter


class Payment(NamedTuple):
    """Buyer to broker, and broker to each owner who delivered."""

    amount: float
