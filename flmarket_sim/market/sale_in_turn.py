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

from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog import BROKER
from flmarket_sim.eventlog.schema import DecisionReason, OfferRecord
from flmarket_sim.market.judgement import undecided
from flmarket_sim.market.mail import Inbox
from flmarket_sim.market.messages import BidMessage, Decision, MenuMessage, Offers
from flmarket_sim.market.owner import ALLOCATE, DECIDE, Cohort
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.valuation import STEP

Floats = NDArray[np.float64]


class MenuChoices:
    """The choices of a cohort's owners from their menus, by rows of the bids. `sellers` are the people who have sold."""

    def __init__(
        self, cohort: Cohort, auction: Any, slots: NDArray[np.int64], bids: BidBatch
    ) -> None:
        self.cohort, self.auction, self.slots = cohort, auction, slots
        self.reading = auction.reading(bids)
        self.judgement = undecided(cohort, slots)
        self.sellers: set[int] = set()

    def choose(self, row: int, offer: Any) -> None:
        """By her report she takes her favourite; a rational owner takes nothing that costs her more than it pays."""
        slot = int(self.slots[row])
        loss, payment, size = taken(self.auction, self.reading, offer)
        if loss == 0.0:
            return
        self.cohort.sell_records(self.slots[row : row + 1], np.array([size]))
        value = worth(self.cohort, slot, loss, size, self.sellers)
        self.judgement.value[row] = value
        if declines(self.cohort, payment, value):
            self.judgement.decline(row, DecisionReason.BELOW_COST)
            return
        self.sellers.add(int(self.cohort.people[slot]))
        self.judgement.accept(row, loss, payment)


def taken(auction: Any, reading: Any, offer: Any) -> tuple[float, float, float]:
    """Privacy loss, payment and records that the owner of an offer takes by her report."""
    with plugin_errors("auction", auction.name):
        loss, payment, size = auction.choice(reading, np.zeros(1, np.int64), offer)
        return float(loss[0]), float(payment[0]), float(size[0])


def worth(cohort: Cohort, slot: int, loss: float, size: float, sellers: set[int]) -> float:
    """What a sale is truly worth to its owner. A step owner's cost is one for all her names: nothing, once one of them has sold."""
    people, person = cohort.world.population, int(cohort.people[slot])
    value = float(people.value(np.array([person]), np.array([loss]))[0])
    if people.family[person] == STEP:
        return 0.0 if person in sellers else value
    return value * size / float(people.data_size[person])


def declines(cohort: Cohort, payment: float, value: float) -> bool:
    return cohort.world.scenario.owners.accept == "rational" and payment < value * (1 - 1e-9)


def replayed(
    cohort: Cohort, auction: Any, bids: BidBatch, budget: Floats, slots: NDArray[np.int64], row: int
) -> tuple[float, float, float]:
    """Privacy loss, payment and records of a row, had the bids been these: everybody declines what costs her more than it pays, and
    answers in time or not, as she would have."""
    reading, deadline = auction.reading(bids), cohort.world.scenario.market.decision_deadline
    found, sellers = (0.0, 0.0, 1.0), set[int]()
    asking = auction.ask(bids.data_size, budget)
    for offer in asking:
        here = int(offer.owner[0])
        slot = int(slots[here])
        loss, payment, size = taken(auction, reading, offer)
        late = cohort.delays[ALLOCATE][slot] + cohort.delays[DECIDE][slot] > deadline
        if loss > 0.0 and (
            late or declines(cohort, payment, worth(cohort, slot, loss, size, sellers))
        ):
            loss, payment = 0.0, 0.0
        if loss > 0.0:
            sellers.add(int(cohort.people[slot]))
        if here == row:
            found = (loss, payment, size)
        asking.settle(np.array([loss]), np.array([payment]))
    return found


def sell_in_turn(
    cohort: Cohort,
    auction: Any,
    bids: list[BidMessage],
    batch: BidBatch,
    budget: Floats,
    deadline: float,
    too_late: Any,
) -> Generator[Event, Any, tuple[Offers, list[Decision]]]:
    """Asks every bidder in the auction's order. Whoever does not answer by her deadline takes nothing. Returns what was sold to whom,
    by rows of the bids, and the decisions to sell."""
    world = cohort.world
    slots = np.array([bid.slot for bid in bids])
    with plugin_errors("auction", auction.name):
        choices = MenuChoices(cohort, auction, slots, batch)
        asking = auction.ask(batch.data_size, budget)
        offers = iter(asking)
    cohort.sell_in_turn(choices.judgement, choices.choose)
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
        _log_offer(cohort, cohort.names[bid.slot], place, offer)
        inbox = Inbox(world.env, too_late)
        bid.reply.send(MenuMessage(row, offer, inbox), cohort.delays[ALLOCATE][bid.slot])
        answers: list[Decision] = yield from inbox.collect(1, deadline)
        if answers and answers[0].accepted:
            agreed.append(answers[0])
            loss[row], payment[row] = answers[0].privacy_loss, answers[0].payment
        with plugin_errors("auction", auction.name):
            asking.settle(loss[row : row + 1], payment[row : row + 1])
        place += 1
    return Offers(slots, loss, payment), agreed


def _log_offer(cohort: Cohort, receiver: int, place: int, offer: Any) -> None:
    cohort.world.log.write(
        OfferRecord(
            place=place,
            money=float(offer.money[0]),
            privacy_losses=offer.privacy_loss.tolist(),
            payments=offer.payment[0].tolist(),
        ),
        time=cohort.world.env.now,
        round=cohort.round,
        buyer=cohort.buyer,
        sender=BROKER,
        receiver=receiver,
    )
