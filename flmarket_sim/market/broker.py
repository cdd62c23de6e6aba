"""The broker: runs the auction, aggregates gradients, passes money on (paper, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim import aggregation, auctions
from flmarket_sim.auctions.auction import Auction, Outcome, SellsInTurn, auction_in, check_outcome
from flmarket_sim.auctions.learned.regime import regime_note
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog import BROKER, buyer_id
from flmarket_sim.eventlog.schema import (
    AllocationRecord,
    AnnouncementRecord,
    LateMessage,
    LateRecord,
    ModelRecord,
    PaymentRecord,
)
from flmarket_sim.learning.buyer_model import gradient_dimension
from flmarket_sim.market.aggregate import Aggregate, aggregate, delivery_records, error_readings
from flmarket_sim.market.behaviour_feedback import give_feedback
from flmarket_sim.market.bills import Bill
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.contributions import accountant_of
from flmarket_sim.market.counterfactuals import log_counterfactuals
from flmarket_sim.market.inspection import Inspection, admitted, weighed_by
from flmarket_sim.market.judged_gradients import JudgedGradients, judge_gradients
from flmarket_sim.market.mail import Inbox, Letter
from flmarket_sim.market.messages import (
    Allocation,
    Announcement,
    BidMessage,
    Broadcast,
    Decision,
    DeliveryMessage,
    GradientMessage,
    Offers,
    Payment,
    RoundCounts,
)
from flmarket_sim.market.owner import owner
from flmarket_sim.market.sale_in_turn import sell_in_turn
from flmarket_sim.market.world import Observation, World
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose
from flmarket_sim.scenario.model import ResolvedBuyer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Broker:
    """Serves one buyer: `receive` gets her announcements, and each announcement opens a round."""

    def __init__(self, world: World, index: int, buyer: ResolvedBuyer, model: Any) -> None:
        self.world, self.index, self.model = world, index, model
        self.rule = aggregation.create(buyer.aggregation.name, **buyer.aggregation.options)
        self.robust = registry.robust_rules.create(buyer.robust.name, **buyer.robust.options)
        self.errors = error_readings(
            world.randomisers[index].perturbation,
            world.scenario.privacy.clip,
            buyer,
            gradient_dimension(buyer.model, model),
        )
        self.accountant = accountant_of(
            world, index, buyer, model, self.rule, self.robust, self.errors
        )
        made = auctions.create(buyer.auction.name, **buyer.auction.options)
        self.auction = auction_in(made, self.errors.chosen)
        self.inspection = None if world.scenario.check is None else Inspection(world, index, model)
        self.in_turn = self.auction if isinstance(self.auction, SellsInTurn) else None
        note = regime_note(made, self.errors.chosen)
        if note is not None and note not in world.notes:
            world.notes.append(note)

    def receive(self, arrival: Event) -> None:
        """Callback of an announcement's arrival."""
        announcement: Any = arrival.value
        self.world.env.process(self.trade(announcement))

    def trade(self, announcement: Announcement) -> Generator[Event, Any, None]:
        """One round, from the announcement to the owners' money."""
        world, market = self.world, self.world.scenario.market
        cohort = Cohort(
            world,
            self.index,
            announcement.round,
            self.model,
            self.auction,
            announcement.budget,
            self.errors.vector.variance,
            announcement.parameters,
            self.inspection,
        )
        asked = len(cohort.participants)
        for_bids, for_decisions, for_gradients = inboxes = (
            Inbox(world.env, self._too_late(cohort, LateMessage.BID)),
            Inbox(world.env, self._too_late(cohort, LateMessage.DECISION)),
            Inbox(world.env, self._too_late(cohort, LateMessage.GRADIENT)),
        )
        self._announce(cohort, announcement, inboxes)
        bids: list[BidMessage] = yield from for_bids.collect(asked, market.bid_deadline)
        bids = admitted(self.inspection, cohort, bids)

        if bids and self.in_turn is not None:
            offers, agreed = yield from self._sell_in_turn(cohort, self.in_turn, announcement, bids)
            winners = len(agreed)
        else:
            offers = self._decide(cohort, announcement, bids)
            winners = int(np.count_nonzero(offers.privacy_loss))
            decisions: list[Decision] = yield from for_decisions.collect(
                winners, market.decision_deadline
            )
            agreed = [decision for decision in decisions if decision.accepted]
        cohort.agree(offers)
        self._broadcast(cohort, Broadcast(announcement.parameters), agreed)
        gradients: list[GradientMessage] = yield from for_gradients.collect(
            len(agreed), market.gradient_deadline
        )

        gradients = sorted(gradients, key=lambda message: message.row)
        judged = judge_gradients(self.inspection, cohort, offers, gradients)
        if self.accountant is not None:
            shared = self.accountant.settle(cohort, announcement, offers, judged.kept)
            judged = judged if shared is None else judged.paid_by(shared)
        counts = RoundCounts(asked, len(bids), winners, len(agreed), len(judged.kept))
        reply = self._deliver(cohort, announcement, offers, judged, counts)
        if judged.billed:
            bill = self._bill(cohort, offers, judged, reply)
            yield reply
            self.pay(bill)
        for message, amount in zip(gradients, judged.amounts.tolist(), strict=True):
            message.reply.send(Payment(amount), cohort.delays.payment[message.slot])

    def _announce(
        self, cohort: Cohort, announcement: Announcement, inboxes: tuple[Inbox, Inbox, Inbox]
    ) -> None:
        """Announces the auction to the owners; each of them starts when the news reaches her."""
        env = self.world.env
        record = AnnouncementRecord(budget=announcement.budget)
        cohort.write(record, receiver=cohort.participants)
        slots_by_delay: dict[float, list[int]] = {}  # one event for all who hear at one moment
        for slot, delay in enumerate(cohort.delays.announcement):
            slots_by_delay.setdefault(delay, []).append(slot)

        def arrive(arrival: Event) -> None:
            slots: Any = arrival.value
            for slot in slots:
                env.process(owner(cohort, slot, inboxes))

        for delay, slots in slots_by_delay.items():
            env.timeout(delay, slots).callbacks.append(arrive)

    def _decide(self, cohort: Cohort, announcement: Announcement, bids: list[BidMessage]) -> Offers:
        """Runs the auction on the bids in order of arrival, and tells every bidder the outcome."""
        if not bids:
            return Offers(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        slots, batch = gathered(bids)
        budget = np.array([announcement.budget])
        rng = self.world.streams.generator(Purpose.AUCTION, self.index, cohort.round)
        reputation = None if self.inspection is None else self.inspection.weighs(cohort, slots)
        weighed = batch if reputation is None else weighed_by(batch, reputation)
        outcome = decided(self.auction, weighed, budget, rng)
        if reputation is not None:
            outcome = replace(outcome, payment=outcome.payment * reputation)
        if outcome.data_size is not None:
            cohort.sell_records(slots, outcome.data_size[0])
        offers = Offers(slots, outcome.privacy_loss[0], outcome.payment[0])
        self._log_outcome(cohort, batch, budget, offers)
        cohort.judge(offers)  # for all owners at once; each decides when her allocation arrives
        delays = cohort.delays.allocation
        outcomes = zip(bids, offers.privacy_loss.tolist(), offers.payment.tolist(), strict=True)
        for row, (bid, loss, payment) in enumerate(outcomes):
            bid.reply.send(Allocation(row, loss, payment), delays[bid.slot])
        return offers

    def _sell_in_turn(
        self,
        cohort: Cohort,
        auction: SellsInTurn,
        announcement: Announcement,
        bids: list[BidMessage],
    ) -> Generator[Event, Any, tuple[Offers, list[Decision]]]:
        """Offers menus to the bidders in turn. The log has the sales as allocations, as always."""
        _, batch = gathered(bids)
        budget = np.array([announcement.budget])
        deadline = self.world.scenario.market.decision_deadline
        late = self._too_late(cohort, LateMessage.DECISION)
        offers, agreed = yield from sell_in_turn(
            cohort, auction, bids, batch, budget, deadline, late
        )
        outcome = Outcome(offers.privacy_loss[None], offers.payment[None])
        check_outcome(auction.name, outcome, batch, budget)
        self._log_outcome(cohort, batch, budget, offers)
        return offers, agreed

    def _log_outcome(self, cohort: Cohort, bids: BidBatch, budget: Floats, offers: Offers) -> None:
        record = AllocationRecord(privacy_loss=offers.privacy_loss, payment=offers.payment)
        cohort.write(record, receiver=cohort.participants[offers.slots])
        if cohort.misreports is not None and self.world.scenario.market.counterfactual:
            log_counterfactuals(cohort, self.auction, bids, budget, offers)

    def _broadcast(self, cohort: Cohort, broadcast: Broadcast, agreed: list[Decision]) -> None:
        """Sends the model to the owners who agreed to sell."""
        size = 0 if broadcast.parameters is None else broadcast.parameters.nbytes
        receivers = cohort.participants[[decision.slot for decision in agreed]]
        cohort.write(ModelRecord(bytes=size), receiver=receivers)
        for decision in agreed:
            decision.reply.send(broadcast, cohort.delays.model[decision.slot])

    def _deliver(
        self,
        cohort: Cohort,
        announcement: Announcement,
        offers: Offers,
        judged: JudgedGradients,
        counts: RoundCounts,
    ) -> Letter:
        """Aggregates the gradients and sends the result to the buyer. Returns her letter of
        payment."""
        result = aggregate(
            cohort,
            self.rule,
            self.robust,
            self.errors,
            offers,
            judged.kept,
            announcement.parameters,
        )
        rows, owed = judged.rows, float(judged.amounts.sum())
        judged.log(cohort, offers)
        kept = np.array([message.row for message in judged.kept], dtype=np.int64)
        self._log_delivery(cohort, result, owed, cohort.participants[offers.slots[kept]])
        payment = Letter(self.world.env)
        assert announcement.reply is not None
        message = DeliveryMessage(
            gradient=result.gradient, owed=owed, counts=counts, bounds=result.bounds, reply=payment
        )
        announcement.reply.send(message, self.world.buyer_delays(self.index, cohort.round)[1])
        value = cohort.true_costs(offers, rows)
        self.world.observed[self.index] = Observation(
            privacy_sold=float(offers.privacy_loss[rows].sum()),
            value_sold=float(value.sum()),
            true_error=result.true_error,
            bound_of_data=result.bound_of_data,
        )
        if cohort.misreports is not None:
            give_feedback(cohort, offers, rows, judged.received())
        return payment

    def _log_delivery(self, cohort: Cohort, result: Aggregate, owed: float, sellers: Ints) -> None:
        weights, delivery = delivery_records(result, owed)
        cohort.write(weights, receiver=sellers)
        cohort.write(delivery, receiver=buyer_id(self.index))
        if result.combination is not None:
            cohort.write(result.combination, receiver=buyer_id(self.index))

    def _bill(
        self, cohort: Cohort, offers: Offers, judged: JudgedGradients, payment: Letter
    ) -> Bill:
        slots = offers.slots[judged.rows]
        bill = Bill(
            buyer=self.index,
            round=cohort.round,
            names=cohort.participants[slots],
            people=cohort.people[slots],
            amounts=judged.amounts,
            payment=payment,
        )
        self.world.bills[self.index, cohort.round] = bill
        return bill

    def pay(self, bill: Bill) -> None:
        """The buyer's money has arrived: each owner gets hers."""
        del self.world.bills[bill.buyer, bill.round]
        self.world.log.write(
            PaymentRecord(amount=bill.amounts),
            time=self.world.env.now,
            round=bill.round,
            buyer=bill.buyer,
            sender=BROKER,
            receiver=bill.names,
        )
        self.world.ledger.earn(bill.people, bill.amounts)

    def _too_late(self, cohort: Cohort, kind: LateMessage) -> Callable[[Any], None]:
        """What happens to a message that arrives after its deadline: the sender hears about it."""

        def refuse(message: Any) -> None:
            cohort.write(LateRecord(message=kind), sender=cohort.numbers[message.slot])
            message.reply.send(None, cohort.delays.allocation[message.slot])

        return refuse


def decided(auction: Auction, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
    """What an auction decides about the bids of one market; refuses what breaks its contract."""
    with plugin_errors("auction", auction.name):
        return check_outcome(auction.name, auction.decide(bids, budget, rng), bids, budget)


def gathered(bids: list[BidMessage]) -> tuple[Ints, BidBatch]:
    """The slots of the bids, in order of arrival, and the bids as one market."""
    slots, values, budget, size, _ = zip(*bids, strict=True)
    return np.array(slots), BidBatch(np.stack(values)[None], np.array([budget]), np.array([size]))
