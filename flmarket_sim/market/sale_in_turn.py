"""A sale in turn: the broker offers a menu to one owner after the other, and each answers first.

The auction gives the menus. An owner answers by herself: the truthful one by her true valuation,
and another one by the valuation that her bid pretends. Whether she then sells, an owner who cheats
decides by what the sale truly costs her. The broker sees her answer only (docs/seq-price.md).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim.auctions.auction import Offer, SellsInTurn
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.schema import DecisionReason, OfferRecord
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.cohort_cheats import plan_in_turn
from flmarket_sim.market.judgement import honest_money, rational, undecided
from flmarket_sim.market.mail import Inbox
from flmarket_sim.market.messages import BidMessage, Decision, MenuMessage, Offers
from flmarket_sim.market.sale_value import value_in_turn
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.valuation import covers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class MenuChoices:
    """What a cohort's owners choose from their menus, by rows of the bids.

    `bids` have what their owners state, which no message to the broker contains. `sellers` are the
    persons who have sold something.
    """

    def __init__(self, cohort: Cohort, auction: SellsInTurn, slots: Ints, bids: BidBatch) -> None:
        self.cohort, self.auction, self.slots = cohort, auction, slots
        self.reading = auction.reading(bids)
        self.sellers: set[int] = set()

    def favourite(self, offer: Offer) -> tuple[float, float, float]:
        """Privacy loss, payment and records that the owner of an offer takes by her report."""
        with plugin_errors("auction", self.auction.name):
            loss, payment, size = self.auction.choice(self.reading, np.zeros(1, np.int64), offer)
            return float(loss[0]), float(payment[0]), float(size[0])

    def value(self, slot: int, records: float, loss: float) -> float:
        """The true value of a sale, after the sales so far."""
        people, person = self.cohort.world.population, int(self.cohort.people[slot])
        return value_in_turn(people, person, records, loss, self.sellers)

    def takes(self, slot: int, option: tuple[float, float, float]) -> bool:
        """Whether an owner takes the option (privacy loss, payment, records) that is best by her
        report. One who does is a seller, if her records lose anything.

        She counts on the risk of a false accusation, where the broker looks for cheats. An owner
        who cheats counts on what she would truly do.
        """
        (lost, money, records), world = option, self.cohort.world
        cheating = plan_in_turn(self.cohort, slot, option, self.value)
        if cheating is not None:
            money, lost, records = cheating
        else:
            money = float(honest_money(world, np.array(money)))
        if rational(world) and not covers(money, self.value(slot, records, lost)):
            return False
        if lost > 0.0:
            self.sellers.add(int(self.cohort.people[slot]))
        return True


def sell_in_turn(
    cohort: Cohort,
    auction: SellsInTurn,
    bids: list[BidMessage],
    batch: BidBatch,
    budget: Floats,
    deadline: float,
    too_late: Callable[[Any], None],
) -> Generator[Event, Any, tuple[Offers, list[Decision]]]:
    """Offers a menu to every bidder in the auction's order.

    An owner who does not answer by her deadline takes nothing. Returns what each row of the bids
    sold and for how much, and the decisions to sell.
    """
    slots = np.array([bid.slot for bid in bids])
    with plugin_errors("auction", auction.name):
        choices = MenuChoices(cohort, auction, slots, cohort.reports.at(slots).batch())
        asking = auction.ask(batch.data_size, budget)
        offers = iter(asking)
    _let_owners_choose(cohort, choices)
    loss, payment = np.zeros(len(bids)), np.zeros(len(bids))
    agreed: list[Decision] = []
    place = 0
    while (offer := next_offer(auction, offers)) is not None:
        row = int(offer.owner[0])
        bid = bids[row]
        _log_offer(cohort, bid.slot, place, offer)
        inbox = Inbox(cohort.world.env, too_late)
        bid.reply.send(MenuMessage(row, offer, inbox), cohort.delays.allocation[bid.slot])
        answers: list[Decision] = yield from inbox.collect(1, deadline)
        if answers and answers[0].accepted:
            agreed.append(answers[0])
            loss[row], payment[row] = answers[0].privacy_loss, answers[0].payment
        with plugin_errors("auction", auction.name):
            asking.settle(loss[row : row + 1], payment[row : row + 1])
        place += 1
    return Offers(slots, loss, payment), agreed


def next_offer(auction: SellsInTurn, offers: Iterator[Offer]) -> Offer | None:
    """The next menu of a sale, once the one before is settled; None at its end."""
    with plugin_errors("auction", auction.name):
        return next(offers, None)


def _let_owners_choose(cohort: Cohort, choices: MenuChoices) -> None:
    """Each owner takes her favourite by her report; a rational one declines it below its value."""
    judgement = undecided(cohort, choices.slots)

    def choose(row: int, offer: Offer) -> None:
        slot = int(choices.slots[row])
        loss, payment, records = option = choices.favourite(offer)
        if loss == 0.0:
            return
        cohort.sell_records(choices.slots[row : row + 1], np.array([records]))
        judgement.value[row] = choices.value(slot, records, loss)
        if choices.takes(slot, option):
            judgement.accept(row, loss, payment)
        else:
            judgement.decline(row, DecisionReason.BELOW_COST)

    cohort.sell_in_turn(judgement, choose)


def replay_sale(
    cohort: Cohort, auction: SellsInTurn, bids: BidBatch, budget: Floats, slots: Ints, row: int
) -> tuple[float, float, float]:
    """Privacy loss, payment and records of a row if the bids had been `bids`.

    All owners decline what they would decline, and their answers are late if they would be late.
    """
    choices = MenuChoices(cohort, auction, slots, bids)
    deadline = cohort.world.scenario.market.decision_deadline
    sale = (0.0, 0.0, 1.0)
    asking = auction.ask(bids.data_size, budget)
    for offer in asking:
        asked_row = int(offer.owner[0])
        slot = int(slots[asked_row])
        loss, payment, records = option = choices.favourite(offer)
        late = cohort.delays.allocation[slot] + cohort.delays.decision[slot] > deadline
        if loss > 0.0 and (late or not choices.takes(slot, option)):
            loss, payment = 0.0, 0.0
        if asked_row == row:
            sale = (loss, payment, records)
        asking.settle(np.array([loss]), np.array([payment]))
    return sale


def _log_offer(cohort: Cohort, slot: int, place: int, offer: Offer) -> None:
    record = OfferRecord(
        place=place,
        money=float(offer.money[0]),
        privacy_losses=offer.privacy_loss.tolist(),
        payments=offer.payment[0].tolist(),
    )
    cohort.write(record, receiver=cohort.numbers[slot])
