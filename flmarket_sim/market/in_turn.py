"""A sale in turn: the auction asks one owner after the other, each sees a menu and answers before the next is asked.

Such an auction has `ask(data_size, budget)`, which gives out offers and is told each choice (`settle`), `reading(bids)`, and
`choice(reading, rows, offer)`: what an owner takes by her report (docs/seq-price.md).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim.bids import BidBatch
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog import BROKER
from flmarket_sim.market.mail import Inbox
from flmarket_sim.market.messages import BidMessage, Decision, MenuMessage, Offers
from flmarket_sim.market.owner import ACCEPTED, ALLOCATE, BELOW_COST, NOTHING_LIKED, Cohort, Judgement

Floats = NDArray[np.float64]


class InTurn(Judgement):
    """What the owners of a cohort made of their menus, row by row of the bids: nothing, until they are asked."""

    def __init__(self, cohort: Cohort, auction: Any, slots: NDArray[np.int64], bids: BidBatch) -> None:
        self.cohort, self.auction, self.slots = cohort, auction, slots
        self.reading = auction.reading(bids)
        n = len(slots)
        self.value, self.payment = np.zeros(n), np.zeros(n)
        self.reason = np.full(n, NOTHING_LIKED, np.int8)
        self.accepted = np.zeros(n, np.bool_)
        self.accepts, self.loss = [False] * n, [0.0] * n
        self.decisions = cohort.world.log.table(
            "decision", cohort.round, cohort.buyer, cohort.owners[slots], BROKER, self.accepted, self.reason, self.value
        )

    def choose(self, row: int, offer: Any) -> None:
        """By her report she takes her favourite; a rational owner takes nothing that costs her more than it pays."""
        with plugin_errors("auction", self.auction.name):
            loss, payment, size = (
                float(part[0]) for part in self.auction.choice(self.reading, np.zeros(1, np.int64), offer)
            )
        if loss == 0.0:
            return
        slot = self.slots[row : row + 1]
        self.cohort.sell_records(slot, np.array([size]))
        self.value[row] = self.cohort.true_value(slot, np.array([loss]))[0]
        rational = self.cohort.world.scenario.owners.accept == "rational"
        if rational and payment < self.value[row] * (1 - 1e-9):
            self.reason[row] = BELOW_COST
            return
        self.reason[row], self.accepted[row] = ACCEPTED, True
        self.accepts[row], self.loss[row], self.payment[row] = True, loss, payment


def sell_in_turn(
    cohort: Cohort, auction: Any, bids: list[BidMessage], batch: BidBatch, budget: Floats, deadline: float, too_late: Any
) -> Generator[Event, Any, tuple[Offers, list[Decision]]]:
    """Asks every bidder in the auction's order. Whoever does not answer by her deadline takes nothing. Returns what was sold to whom,
    by rows of the bids, and the decisions to sell."""
    world = cohort.world
    slots = np.array([bid.slot for bid in bids])
    with plugin_errors("auction", auction.name):
        turn = InTurn(cohort, auction, slots, batch)
        asking = auction.ask(batch.data_size, budget)
        offers = iter(asking)
    cohort.sell_in_turn(turn)
    loss, payment = np.zeros(len(bids)), np.zeros(len(bids))
    agreed: list[Decision] = []
    place = 0
    while True:
        with plugin_errors("auction", auction.name):
            offer = next(offers, None)
        if offer is None:
            break
        row = int(offer.owner[0])
        bid = bids[row]
        _log_offer(cohort, slots[row : row + 1], place, offer)
        inbox = Inbox(world.env, too_late)
        bid.reply.send(MenuMessage(row, offer, inbox), cohort.delays[ALLOCATE][bid.slot])
        answers: list[Decision] = yield from inbox.collect(1, deadline)
        if answers and answers[0].accepted:
            agreed.append(answers[0])
            loss[row], payment[row] = turn.loss[row], turn.payment[row]
        with plugin_errors("auction", auction.name):
            asking.settle(loss[row : row + 1], payment[row : row + 1])
        place += 1
    return Offers(slots, loss, payment), agreed


def _log_offer(cohort: Cohort, slot: NDArray[np.int64], place: int, offer: Any) -> None:
    losses, payments = np.empty(1, object), np.empty(1, object)
    losses[0], payments[0] = offer.privacy_loss.tolist(), offer.payment[0].tolist()
    world = cohort.world
    world.log.block(
        "offer", 1, world.env.now, cohort.round, cohort.buyer, BROKER, cohort.owners[slot],
        place, float(offer.money[0]), losses, payments,
    )  # fmt: skip
