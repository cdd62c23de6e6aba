"""One round of a market of real clients: the broker's steps, each with its events in the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import TOLERANCE, Offer, Outcome, check_outcome
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog import BROKER, Log, buyer_id
from flmarket_sim.eventlog.record import Record
from flmarket_sim.eventlog.schema import (
    AllocationRecord,
    AnnouncementRecord,
    BidRecord,
    DecisionRecord,
    DropoutRecord,
    DropoutStage,
    LateMessage,
    ModelRecord,
    OfferRecord,
    PaymentRecord,
)
from flmarket_sim.flower.buyer_desk import BuyerDesk
from flmarket_sim.flower.menus import is_on_menu, menu
from flmarket_sim.flower.messages import (
    BidReply,
    BidRequest,
    Choice,
    MessageError,
    OfferRequest,
    SaleReply,
    SaleRequest,
    packed,
    unpacked,
)
from flmarket_sim.flower.post import Post, TimelyReply
from flmarket_sim.market.aggregate import aggregate_sent, delivery_records
from flmarket_sim.market.broker import decided
from flmarket_sim.market.cohort_gradients import gradient_record
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.market.messages import Bounds, Offers, RoundCounts
from flmarket_sim.market.round_records import round_records
from flmarket_sim.market.sale_in_turn import next_offer
from flmarket_sim.market.world import Observation
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.randomness import Purpose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Unpaid = dict[int, list[tuple[int, int, float]]]  # by owner: buyer, round and amount


class Bids(NamedTuple):
    """The bids in time, by rows in the order in which owners were asked."""

    owners: Ints
    batch: BidBatch


class Delivery(NamedTuple):
    """What the buyer gets: `Delivered` of round_records.py."""

    owed: float
    counts: RoundCounts
    bounds: Bounds


@dataclass
class ServerRound:
    """A round of one buyer. `unpaid` are payments of which owners have not heard yet."""

    desk: BuyerDesk
    number: int
    asked: Ints
    post: Post
    log: Log
    ledger: Ledger
    run: str
    unpaid: Unpaid
    gradients: dict[int, Floats | None] = field(default_factory=dict)  # by row

    def trade(self) -> Floats | None:
        """From the announcement to the owners' money. Returns the delivered gradient, if any."""
        desk, market = self.desk, self.desk.scenario.market
        started = self.post.moment()
        budget = desk.budget(self.number, self.asked)
        self._write(AnnouncementRecord(budget=budget), started, sender=buyer_id(desk.index))
        self._write(AnnouncementRecord(budget=budget), started, receiver=self.asked)
        bids = self._collect_bids(budget, market.bid_deadline)
        if bids is None:
            offers, sizes = Offers(np.zeros(0, np.int64), np.zeros(0), np.zeros(0)), np.zeros(0)
        elif desk.in_turn is None:
            offers, sizes = self._auction(bids, budget)
        else:
            offers, sizes = self._sell_in_turn(bids, budget, market.decision_deadline)
        winners = np.flatnonzero(offers.privacy_loss)
        accepted = self._buy(offers, sizes, winners)
        rows = np.array(sorted(self.gradients), np.int64)
        counts = RoundCounts(len(self.asked), len(offers.slots), len(winners), accepted, len(rows))
        return self._deliver(bids, offers, rows, counts, budget, started)

    def _write(
        self, record: Record, time: float, sender: Any = BROKER, receiver: Any = BROKER
    ) -> None:
        self.log.write(
            record,
            time=time,
            round=self.number,
            buyer=self.desk.index,
            sender=sender,
            receiver=receiver,
        )

    @property
    def _key(self) -> tuple[int, int]:
        return self.desk.index, self.number

    def _request(self) -> dict[str, Any]:
        return {"run": self.run, "buyer": self.desk.index, "round": self.number}

    def _collect_bids(self, budget: float, deadline: float) -> Bids | None:
        """Asks for bids; None if there are none."""
        replies: dict[int, BidReply] = {}
        terms, levels = self.desk.terms, self.desk.scenario.market.levels
        requests = {}
        for owner in self.asked.tolist():
            due = self.unpaid.get(owner, [])
            requests[owner] = BidRequest(
                **self._request(),
                budget=budget,
                terms=terms,
                paid_buyers=[one[0] for one in due],
                paid_rounds=[one[1] for one in due],
                paid=[one[2] for one in due],
            )

        def hear(arrival: TimelyReply[BidReply]) -> None:
            owner, bid = arrival.owner, arrival.reply
            self.unpaid.pop(owner, None)
            values, budget, size = bid.values, bid.privacy_budget, bid.data_size
            if values is None or not bid.is_valuation(levels):
                self._drop(DropoutStage.BID, arrival.time, owner)
                return
            replies[owner] = bid
            record = BidRecord(
                family=None, rate=None, privacy_budget=budget, data_size=size,
                value=values[-1], values=values, behaviour=None, person=None,
                true_privacy_budget=None, true_data_size=None, true_value=None,
            )  # fmt: skip
            self._write(record, arrival.time, sender=owner)

        heard: set[int] = set()

        def note(arrival: TimelyReply[BidReply]) -> None:
            heard.add(arrival.owner)
            hear(arrival)

        ended = self.post.ask(requests, BidReply, deadline, LateMessage.BID, self._key, note)
        for owner in self.asked.tolist():
            if owner not in heard:
                self._drop(DropoutStage.BID, ended, owner)
        owners = [owner for owner in self.asked.tolist() if owner in replies]
        if not owners:
            return None
        bids = [replies[owner] for owner in owners]
        batch = BidBatch(
            np.array([bid.values for bid in bids])[None],
            np.array([[bid.privacy_budget for bid in bids]]),
            np.array([[float(bid.data_size or 0) for bid in bids]]),
        )
        return Bids(np.array(owners), batch)

    def _drop(self, stage: DropoutStage, time: float, owner: int) -> None:
        """An owner is silent; why she is only she knows."""
        self._write(DropoutRecord(stage=stage, reason=None), time, sender=owner)

    def _auction(self, bids: Bids, budget: float) -> tuple[Offers, Floats]:
        """What the auction decides, and on how many records."""
        desk, batch = self.desk, bids.batch
        rng = desk.streams.generator(Purpose.AUCTION, desk.index, self.number)
        outcome = decided(desk.auction, batch, np.array([budget]), rng)
        size = batch.data_size if outcome.data_size is None else outcome.data_size
        offers = Offers(bids.owners, outcome.privacy_loss[0], outcome.payment[0])
        record = AllocationRecord(privacy_loss=offers.privacy_loss, payment=offers.payment)
        self._write(record, self.post.moment(), receiver=bids.owners)
        return offers, size[0]

    def _sell_in_turn(self, bids: Bids, budget: float, deadline: float) -> tuple[Offers, Floats]:
        """Offers a menu to one bidder after the other; each answers before the next is asked."""
        desk, batch, money = self.desk, bids.batch, np.array([budget])
        auction = desk.in_turn
        assert auction is not None
        loss, payment, size = np.zeros((3, len(bids.owners)))
        size[:] = batch.data_size[0]
        with plugin_errors("auction", auction.name):
            asking = auction.ask(batch.data_size, money)
            offers = iter(asking)
        place = 0
        while (offer := next_offer(auction, offers)) is not None:
            row = int(offer.owner[0])
            choice = self._choice(bids, offer, row, place, deadline)
            if choice is not None:
                loss[row], payment[row] = choice.privacy_loss, choice.payment
                size[row] = choice.records
            with plugin_errors("auction", auction.name):
                asking.settle(loss[row : row + 1], payment[row : row + 1])
            place += 1
        check_outcome(auction.name, Outcome(loss[None], payment[None]), batch, money)
        record = AllocationRecord(privacy_loss=loss, payment=payment)
        self._write(record, self.post.moment(), receiver=bids.owners)
        return Offers(bids.owners, loss, payment), size

    def _choice(
        self, bids: Bids, offer: Offer, row: int, place: int, deadline: float
    ) -> Choice | None:
        """What the owner of a row takes from her menu; None if it is nothing."""
        owner, sent = int(bids.owners[row]), menu(offer)
        shown = {key: sent[key] for key in ("money", "privacy_losses", "payments")}
        record = OfferRecord(place=place, **shown)
        self._write(record, self.post.moment(), receiver=owner)
        taken: list[Choice] = []

        def hear(arrival: TimelyReply[Choice]) -> None:
            choice = arrival.reply
            sold = (
                0.0 < choice.privacy_loss <= bids.batch.privacy_budget[0, row] * (1 + TOLERANCE)
                and choice.records <= bids.batch.data_size[0, row]
                and is_on_menu(self.desk.auction, offer, choice)
            )
            self._write(self._decision(sold), arrival.time, sender=owner)
            if sold:
                taken.append(choice)

        request = OfferRequest(**self._request(), terms=self.desk.terms, **sent)
        kind = LateMessage.DECISION
        self.post.ask({owner: request}, Choice, deadline, kind, self._key, hear)
        return taken[0] if taken else None

    def _decision(self, accepted: bool) -> DecisionRecord:
        """The broker sees whether she accepts; reason and value are hers."""
        return DecisionRecord(accepted=accepted, reason=None, value=None)

    def _buy(self, offers: Offers, sizes: Floats, winners: Ints) -> int:
        """Offers the sales to the winners and collects gradients. Returns how many accept."""
        desk, market = self.desk, self.desk.scenario.market
        learner = desk.learner
        parameters = None if learner is None else packed(learner.parameters)
        rows = {int(offers.slots[row]): row for row in winners.tolist()}
        requests = {
            owner: SaleRequest(
                **self._request(),
                terms=desk.terms,
                privacy_loss=float(offers.privacy_loss[row]),
                payment=float(offers.payment[row]),
                records=int(sizes[row]),
                parameters=parameters,
            )
            for owner, row in rows.items()
        }
        if requests:
            size = 0 if parameters is None else len(parameters)
            self._write(ModelRecord(bytes=size), self.post.moment(), receiver=np.array([*rows]))
        answered: dict[int, bool] = {}

        def hear(arrival: TimelyReply[SaleReply]) -> None:
            owner, row = arrival.owner, rows[arrival.owner]
            answered[owner] = arrival.reply.accepted
            if desk.in_turn is None:
                self._write(self._decision(arrival.reply.accepted), arrival.time, sender=owner)
            if arrival.reply.accepted:
                self._receive(arrival, offers, sizes, row)

        deadline = market.decision_deadline + market.gradient_deadline
        kind = LateMessage.GRADIENT
        ended = self.post.ask(requests, SaleReply, deadline, kind, self._key, hear)
        for owner in rows:
            if owner not in answered:
                self._drop(DropoutStage.GRADIENT, ended, owner)
        return len(winners) if desk.in_turn is not None else sum(answered.values())

    def _receive(
        self, arrival: TimelyReply[SaleReply], offers: Offers, sizes: Floats, row: int
    ) -> None:
        """Takes a gradient, if it is one."""
        desk, learns = self.desk, self.desk.learner is not None
        content, owner = arrival.reply.gradient, arrival.owner
        try:
            if not arrival.reply.delivered or learns != (content is not None):
                raise MessageError("there is no gradient in the message")
            gradient = None if content is None else unpacked(content, desk.dimension)
        except MessageError:
            self._drop(DropoutStage.GRADIENT, arrival.time, owner)
            return
        loss = offers.privacy_loss[row : row + 1]
        record = gradient_record(
            desk.perturbation,
            desk.scenario.privacy.clip,
            desk.dimension if learns else 0,
            loss,
            sizes[row : row + 1].astype(np.int64),
            desk.errors.vector.variance(loss),
        )
        self._write(record, arrival.time, sender=np.array([owner]))
        self.ledger.spend(owner, float(loss[0]))
        self.gradients[row] = gradient

    def _deliver(
        self,
        bids: Bids | None,
        offers: Offers,
        rows: Ints,
        counts: RoundCounts,
        budget: float,
        started: float,
    ) -> Floats | None:
        """Weighs the gradients, pays for them, takes the buyer's step and evaluates."""
        desk = self.desk
        sent = [one for row in rows.tolist() if (one := self.gradients[row]) is not None]
        size = np.zeros(0) if bids is None else bids.batch.data_size[0]
        result, _ = aggregate_sent(desk.rule, desk.robust, desk.errors, offers, rows, sent, size)
        sellers, now = offers.slots[rows], self.post.moment()
        owed = float(offers.payment[rows].sum())
        weights, delivery = delivery_records(result, owed)
        self._write(weights, now, receiver=sellers)
        self._write(delivery, now, receiver=buyer_id(desk.index))
        if result.combination is not None:
            self._write(result.combination, now, receiver=buyer_id(desk.index))
        if len(rows):
            self._pay(owed, sellers, offers.payment[rows], now)
        evaluation = None
        if desk.learner is not None:
            squared = desk.errors.vector.radius**2
            shrinkage = squared / (squared + result.bounds.vector_bound)
            desk.learner.end_round(self.number, result.gradient, shrinkage)
            if desk.spec.model.evaluated(self.number, desk.scenario.rounds):
                assert desk.data is not None
                evaluation = desk.learner.evaluate(desk.data)
        truth = Observation(  # what nobody in a real market knows is nan, or null
            privacy_sold=float(offers.privacy_loss[rows].sum()),
            value_sold=float("nan"),
            true_error=None,
            bound_of_data=result.bounds.error_bound,
        )
        ended, me = self.post.moment(), buyer_id(desk.index)
        summary = Delivery(owed, counts, result.bounds)
        for record in round_records((started, ended), budget, summary, evaluation, truth):
            self._write(record, ended, sender=me, receiver=me)
        return result.gradient

    def _pay(self, owed: float, sellers: Ints, amounts: Floats, now: float) -> None:
        """The buyer pays the broker, and the broker the owners, who hear of it with the next
        message to them."""
        self._write(PaymentRecord(amount=owed), now, sender=buyer_id(self.desk.index))
        self._write(PaymentRecord(amount=amounts), now, receiver=sellers)
        self.ledger.earn(sellers, amounts)
        for owner, amount in zip(sellers.tolist(), amounts.tolist(), strict=True):
            self.unpaid.setdefault(owner, []).append((self.desk.index, self.number, amount))
