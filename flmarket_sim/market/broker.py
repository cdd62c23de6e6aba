"""The broker: runs the auction, collects gradients, aggregates them, passes the money on (paper, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim import aggregation, auctions
from flmarket_sim.aggregation.rule import check_weights
from flmarket_sim.aggregation.weighted_sum import weighted_sum
from flmarket_sim.auctions.auction import Outcome, SellsInTurn, check_outcome
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog import BROKER, buyer_id
from flmarket_sim.eventlog.record import Integers, Record
from flmarket_sim.eventlog.schema import (
    AllocationRecord,
    AnnouncementRecord,
    DeliveryRecord,
    LateMessage,
    LateRecord,
    ModelRecord,
    PaymentRecord,
    WeightRecord,
)
from flmarket_sim.market.bills import Bill
from flmarket_sim.market.counterfactuals import conclude, log_counterfactuals
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
from flmarket_sim.market.owner import ALLOCATE, ANNOUNCE, MODEL, PAY, Cohort, owner
from flmarket_sim.market.sale_in_turn import sell_in_turn
from flmarket_sim.market.world import Observation, World
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.randomness import Purpose
from flmarket_sim.scenario.model import ResolvedBuyer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOTHING = aggregation.ErrorBound(*(np.full(1, np.inf),) * 2, np.full(1, np.nan))


class Broker:
    """Serves one buyer; `receive` is the address for her announcements, and each opens a round of trade."""

    def __init__(self, world: World, index: int, buyer: ResolvedBuyer, model: Any) -> None:
        self.world, self.index, self.model = world, index, model
        self.auction = auctions.create(buyer.auction.name, **buyer.auction.options)
        self.rule = aggregation.create(buyer.aggregation.name, **buyer.aggregation.options)

    def receive(self, arrival: Event) -> None:
        announcement: Any = arrival.value
        self.world.env.process(self.trade(announcement))

    def trade(self, announcement: Announcement) -> Generator[Event, Any, None]:
        """One round, from the announcement to the owners' money."""
        world, market = self.world, self.world.scenario.market
        env = world.env
        cohort = Cohort(
            world, self.index, announcement.round, self.model, self.auction, announcement.budget
        )
        asked = len(cohort.owners)
        inboxes = tuple(Inbox(env, self._too_late(cohort, message)) for message in LateMessage)
        self._ask(cohort, announcement, inboxes)  # type: ignore[arg-type]
        bids: list[BidMessage] = yield from inboxes[0].collect(asked, market.bid_deadline)

        if bids and isinstance(self.auction, SellsInTurn):
            offers, agreed = yield from self._sell_in_turn(cohort, announcement, bids)
            winners = len(agreed)
        else:
            offers = self._decide(cohort, announcement, bids)
            winners = int(np.count_nonzero(offers.privacy_loss))
            decisions: list[Decision] = yield from inboxes[1].collect(
                winners, market.decision_deadline
            )
            agreed = [decision for decision in decisions if decision.accepted]
        cohort.compute_at(offers)
        self._broadcast(cohort, Broadcast(announcement.parameters), agreed)
        gradients: list[GradientMessage] = yield from inboxes[2].collect(
            len(agreed), market.gradient_deadline
        )

        gradients = sorted(gradients, key=lambda message: message.row)
        counts = RoundCounts(asked, len(bids), winners, len(agreed), len(gradients))
        reply = self._deliver(cohort, announcement, offers, gradients, counts)
        if gradients:
            bill = self._bill(cohort, offers, gradients, reply)
            yield reply
            self.pay(bill)
            for message, amount in zip(gradients, bill.amounts.tolist(), strict=True):
                message.reply.send(Payment(amount), cohort.delays[PAY][message.slot])

    def _ask(
        self, cohort: Cohort, announcement: Announcement, inboxes: tuple[Inbox, Inbox, Inbox]
    ) -> None:
        env = self.world.env
        self._log(cohort, cohort.owners, AnnouncementRecord(budget=announcement.budget))
        reached: dict[
            float, list[int]
        ] = {}  # whom it reaches at the same moment, one event reaches
        for slot, delay in enumerate(cohort.delays[ANNOUNCE]):
            reached.setdefault(delay, []).append(slot)

        def arrive(arrival: Event) -> None:
            asked: Any = arrival.value
            for slot in asked:
                env.process(owner(cohort, slot, inboxes))

        for delay, slots in reached.items():
            env.timeout(delay, slots).callbacks.append(arrive)

    def _decide(self, cohort: Cohort, announcement: Announcement, bids: list[BidMessage]) -> Offers:
        """Runs the auction on the bids in order of arrival and tells every bidder."""
        if not bids:
            return Offers(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        slots, batch = gathered(bids)
        budget = np.array([announcement.budget])
        rng = self.world.streams.generator(Purpose.AUCTION, self.index, cohort.round)
        with plugin_errors("auction", self.auction.name):
            outcome = check_outcome(
                self.auction.name, self.auction.decide(batch, budget, rng), batch, budget
            )
        if outcome.data_size is not None:
            cohort.sell_records(slots, outcome.data_size[0])
        offers = Offers(slots, outcome.privacy_loss[0], outcome.payment[0])
        self._log(
            cohort,
            cohort.owners[slots],
            AllocationRecord(privacy_loss=offers.privacy_loss, payment=offers.payment),
        )
        if cohort.lies is not None and self.world.scenario.market.counterfactual:
            log_counterfactuals(cohort, self.auction, batch, budget, offers)
        delays = cohort.delays[ALLOCATE]
        cohort.judge(
            offers
        )  # the arithmetic of all owners at once; each decides when her allocation arrives
        told = zip(bids, offers.privacy_loss.tolist(), offers.payment.tolist(), strict=True)
        for row, (bid, loss, payment) in enumerate(told):
            bid.reply.send(Allocation(row, loss, payment), delays[bid.slot])
        return offers

    def _sell_in_turn(
        self, cohort: Cohort, announcement: Announcement, bids: list[BidMessage]
    ) -> Generator[Event, Any, tuple[Offers, list[Decision]]]:
        """Asks one bidder after the other; what came of it is logged as allocations, like any auction's outcome."""
        slots, batch = gathered(bids)
        budget, deadline = (
            np.array([announcement.budget]),
            self.world.scenario.market.decision_deadline,
        )
        late = self._too_late(cohort, LateMessage.DECISION)
        offers, agreed = yield from sell_in_turn(
            cohort, self.auction, bids, batch, budget, deadline, late
        )
        outcome = Outcome(offers.privacy_loss[None], offers.payment[None])
        check_outcome(self.auction.name, outcome, batch, budget)
        self._log(
            cohort,
            cohort.owners[slots],
            AllocationRecord(privacy_loss=offers.privacy_loss, payment=offers.payment),
        )
        if cohort.lies is not None and self.world.scenario.market.counterfactual:
            log_counterfactuals(cohort, self.auction, batch, budget, offers)
        return offers, agreed

    def _broadcast(self, cohort: Cohort, broadcast: Broadcast, agreed: list[Decision]) -> None:
        size = 0 if broadcast.parameters is None else broadcast.parameters.nbytes
        receivers = cohort.owners[[decision.slot for decision in agreed]]
        self._log(cohort, receivers, ModelRecord(bytes=size))
        delays = cohort.delays[MODEL]
        for decision in agreed:
            decision.reply.send(broadcast, delays[decision.slot])

    def _deliver(
        self,
        cohort: Cohort,
        announcement: Announcement,
        offers: Offers,
        gradients: list[GradientMessage],
        counts: RoundCounts,
    ) -> Letter:
        """Aggregates what came in time and sends it to the buyer. Owners without a gradient count as sellers of nothing."""
        world, clip = self.world, self.world.scenario.privacy.clip
        total, owed, combined, of_data = NOTHING, 0.0, None, float("inf")
        true_error: float | None = None
        true_bias: float | None = None
        if gradients:
            rows = np.array([message.row for message in gradients])
            loss = np.zeros(len(offers.slots))
            loss[rows] = offers.privacy_loss[rows]
            size = cohort.reports.data_size[offers.slots]
            with plugin_errors("aggregation rule", self.rule.name):
                weights = check_weights(
                    self.rule.name, self.rule.weights(loss[None], size[None], clip), loss[None]
                )
            total = aggregation.error_bound_parts(weights, loss[None], size[None], clip)
            of_data = float(total.total[0])
            if cohort.lies is not None:
                true_size = cohort.lies.true_size[offers.slots]
                of_data = float(
                    aggregation.error_bound(weights, loss[None], true_size[None], clip)[0]
                )
            weight = weights[0, rows]
            owed = float(offers.payment[rows].sum())
            self._log(
                cohort,
                cohort.owners[offers.slots[rows]],
                WeightRecord(weight=weight, share=size[rows] / size.sum(), privacy_loss=loss[rows]),
            )
            if gradients[0].gradient is not None:
                combined = weighted_sum(weight, [message.gradient for message in gradients])  # type: ignore[misc]
                computed = cohort.gradients(announcement.parameters)
                true_error, true_bias = computed.true_error(combined, weights[0])
        bound, variance, bias = (
            float(total.total[0]),
            float(total.variance[0]),
            float(total.squared_bias[0]),
        )
        self._log(
            cohort,
            buyer_id(self.index),
            DeliveryRecord(
                valid=bool(gradients),
                gradients=counts.delivered,
                owed=owed,
                error_bound=bound,
                variance=variance,
                squared_bias=bias,
                true_error=true_error,
                true_squared_bias=true_bias,
                bound_of_data=of_data,
            ),
        )
        reply = Letter(world.env)
        assert announcement.reply is not None
        delay = world.buyer_delays(self.index, cohort.round)[1]
        announcement.reply.send(
            DeliveryMessage(combined, owed, counts, bound, variance, bias, reply), delay
        )
        world.observed[self.index] = observe(cohort, offers, gradients, true_error, of_data)
        if cohort.lies is not None:
            delivered = np.array([message.row for message in gradients], dtype=np.int64)
            conclude(cohort, cohort.lies, offers, delivered)
        return reply

    def _bill(
        self, cohort: Cohort, offers: Offers, gradients: list[GradientMessage], payment: Letter
    ) -> Bill:
        rows = [message.row for message in gradients]
        slots = offers.slots[rows]
        bill = Bill(
            self.index,
            cohort.round,
            cohort.owners[slots],
            cohort.people[slots],
            offers.payment[rows],
            payment,
        )
        self.world.bills[self.index, cohort.round] = bill
        return bill

    def pay(self, bill: Bill) -> None:
        """The buyer's money is there: each owner gets hers."""
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

    def _log(self, cohort: Cohort, receiver: Integers, record: Record) -> None:
        """Logs what the broker tells these participants at this moment."""
        self.world.log.write(
            record,
            time=self.world.env.now,
            round=cohort.round,
            buyer=self.index,
            sender=BROKER,
            receiver=receiver,
        )

    def _too_late(self, cohort: Cohort, kind: LateMessage) -> Callable[[Any], None]:
        def refuse(message: Any) -> None:
            self.world.log.write(
                LateRecord(message=kind),
                time=self.world.env.now,
                round=cohort.round,
                buyer=self.index,
                sender=cohort.names[message.slot],
                receiver=BROKER,
            )
            message.reply.send(None, cohort.delays[ALLOCATE][message.slot])

        return refuse


def gathered(bids: list[BidMessage]) -> tuple[Ints, BidBatch]:
    """The slots of the bids, in order of arrival, and the bids as one market."""
    slots, values, budget, size, _ = zip(*bids, strict=True)
    return np.array(slots), BidBatch(np.stack(values)[None], np.array([budget]), np.array([size]))


def observe(
    cohort: Cohort,
    offers: Offers,
    gradients: list[GradientMessage],
    true_error: float | None,
    bound_of_data: float,
) -> Observation:
    """What the round's row of the log tells and no participant knows."""
    rows = np.array([message.row for message in gradients], dtype=np.int64)
    loss = offers.privacy_loss[rows]
    value = cohort.true_value(offers.slots[rows], loss)
    return Observation(float(loss.sum()), float(value.sum()), true_error, bound_of_data)
