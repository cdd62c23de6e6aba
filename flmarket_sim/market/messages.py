"""What participants say to each other. They share nothing else.

A message holds what its receiver may know and nothing of anybody else. The arithmetic behind it is batched: a `row` or `slot`
says which row of the round's tables it came from, so that a thousand bids are one array and still a thousand messages, each with
its own time. `Reports` and `Offers` are such tables; no message holds one.
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


class ReportColumns(NamedTuple):
    """The bids of the owners asked in a round: values (n, M), privacy_budget (n,), data_size (n,)."""

    values: Floats
    privacy_budget: Floats
    data_size: Floats


class BidMessage(NamedTuple):
    """Owner to broker: money she asks at each level (M,), for at most this privacy loss, on so many records."""

    slot: int
    values: Floats
    privacy_budget: float
    data_size: float
    reply: Letter


class Offers(NamedTuple):
    """The auction's outcome for the k bids that came in time: the bid of row j is that of slot slots[j]."""

    slots: Ints
    privacy_loss: Floats
    payment: Floats


class Allocation(NamedTuple):
    """Broker to each bidder: what you would sell and get."""

    row: int
    privacy_loss: float
    payment: float


class MenuMessage(NamedTuple):
    """Broker to the owner whose turn it is: take an option of the menu, or nothing, and answer to `inbox`.

    `offer` is the auction's own: losses, payments, and what is left of the money.
    """

    row: int
    offer: Any
    inbox: Inbox


class Decision(NamedTuple):
    """Owner to broker: I will deliver this for that, or I will not."""

    row: int
    slot: int
    accepted: bool
    privacy_loss: float
    payment: float
    reply: Letter


class Broadcast(NamedTuple):
    """Broker to everybody who accepted: compute a gradient at these parameters. None in a market without learning."""

    parameters: Floats | None


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
