"""What an owner answers to each message of the broker. Her ledger decides what may leave her."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog.schema import DecisionReason, DropoutReason, DropoutStage
from flmarket_sim.flower.menus import offer_of
from flmarket_sim.flower.messages import (
    BidReply,
    BidRequest,
    Choice,
    Hello,
    MessageError,
    OfferRequest,
    Present,
    Receipt,
    RoundMessage,
    SaleReply,
    SaleRequest,
    Settlement,
    Terms,
    Wire,
    packed,
    unpacked,
)
from flmarket_sim.flower.own_ledger import Key, OwnEvent, OwnLedger
from flmarket_sim.flower.owner import Owner
from flmarket_sim.market.ledger import WITHIN
from flmarket_sim.market.messages import ReportColumns
from flmarket_sim.perturbation.perturbation import delta_of

Made = TypeVar("Made", bound=Wire)


class Chance(Protocol):
    """Whether an owner is away in a round, and whether she drops out after she accepted."""

    def away(self, key: Key) -> bool: ...

    def drops_out(self, key: Key) -> bool: ...


class ClientMarket:
    """One owner in the market: each method answers one kind of message.

    `chance` says when an owner whom a scenario has drawn is away or drops out; None for real ones.
    """

    def __init__(self, owner: Owner, chance: Chance | None = None) -> None:
        self.owner, self.chance = owner, chance
        self.lock = threading.Lock()  # Flower may answer several messages at once
        self.seconds_in_market = self.seconds_in_model = 0.0
        self.ledger = OwnLedger(Path(owner.folder), owner.lifetime_budget)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Adds what the block takes to `seconds_in_market`, but for the work of her model, which
        `seconds_in_model` has."""
        began, in_model = time.thread_time(), self.seconds_in_model
        try:
            yield
        finally:
            whole = time.thread_time() - began
            self.seconds_in_market += whole - (self.seconds_in_model - in_model)

    def hello(self, request: Hello) -> Present:
        """Who she is."""
        return Present(name=self.owner.name, number=self.owner.number)

    def bid(self, request: BidRequest) -> BidReply:
        """Her bid, or none; she first books the payments that the message brings."""
        self._book(request)
        key, text = _key(request), _digest(request)
        if (known := self.ledger.reply(key, request.type, text)) is not None:
            return BidReply.of(known)
        self.owner.check(request.terms)
        away = self.chance is not None and self.chance.away(key)
        left = self.ledger.remaining(key)
        columns = None if away else self.owner.report(request.terms, left)
        reply = BidReply()
        if columns is not None:
            reply = BidReply(
                values=columns.values[0].tolist(),
                privacy_budget=float(columns.privacy_budget[0]),
                data_size=self.owner.size,
            )
        events = [_heard("announcement", {"budget": request.budget})]
        if columns is None:
            reason = DropoutReason.AWAY if away else DropoutReason.LIFETIME_BUDGET
            events.append(_dropout(DropoutStage.BID, reason))
        else:
            events.append(_said("bid", self._bid_cells(columns)))
        return self._kept(key, request, reply, events)

    def choose(self, request: OfferRequest) -> Choice:
        """What she takes from a menu: a promise, which `sell` keeps."""
        key, text = _key(request), _digest(request)
        if (known := self.ledger.reply(key, request.type, text)) is not None:
            return Choice.of(known)
        bid = self._bid_of(key, request.terms)
        menu = {
            "money": request.money,
            "privacy_losses": request.privacy_losses,
            "payments": request.payments,
        }
        events = [_heard("offer", menu)]
        loss, payment, records = self.owner.favourite(request.terms, bid, offer_of(request))
        records = min(max(records, 1.0), float(self.owner.size))
        reason, value = DecisionReason.NOTHING_ON_THE_MENU, 0.0
        if loss > 0.0:
            reason, _ = self._judged(key, request.terms, bid, loss, payment, records)
            value = self.owner.value(loss, records)
        events.append(_decision(reason, value))
        taken = reason is DecisionReason.ACCEPTED
        reply = Choice(
            privacy_loss=loss if taken else 0.0, payment=payment if taken else 0.0, records=records
        )
        return self._kept(key, request, reply, events)

    def sell(self, request: SaleRequest) -> SaleReply:
        """Accepts or declines; who accepts computes her gradient, perturbs it and sends it."""
        key, text = _key(request), _digest(request)
        if (known := self.ledger.reply(key, request.type, text)) is not None:
            return SaleReply.of(known)
        terms, loss, payment = request.terms, request.privacy_loss, request.payment
        bid = self._bid_of(key, terms)
        events = []
        if terms.in_turn:
            self._promised(key, loss, payment)
        else:
            events.append(_heard("allocation", {"privacy_loss": loss, "payment": payment}))
        reason, token = self._judged(key, terms, bid, loss, payment, request.records)
        if not terms.in_turn:
            events.append(_decision(reason, self.owner.value(loss, request.records)))
        if token is None:
            return self._kept(key, request, SaleReply(accepted=False, delivered=False), events)
        if self.chance is not None and self.chance.drops_out(key):
            self.ledger.release(token)
            events.append(_dropout(DropoutStage.GRADIENT, DropoutReason.DROPPED_OUT))
            return self._kept(key, request, SaleReply(accepted=True, delivered=False), events)
        events.append(_heard("model", {"bytes": len(request.parameters or b"")}))
        try:
            reply, cells = self._deliver(request)
        except BaseException:
            self.ledger.release(token)
            raise
        events.append(_said("gradient", cells))
        try:
            self.ledger.sell(key, token, request.type, text, reply.plain(), events)
        except FlmarketError:
            if (known := self.ledger.reply(key, request.type, text)) is None:
                raise
            return SaleReply.of(known)
        return reply

    def _kept(self, key: Key, request: RoundMessage, reply: Made, events: list[OwnEvent]) -> Made:
        """Keeps a reply; returns what another process of hers has answered meanwhile, if any."""
        text = _digest(request)
        if self.ledger.keep(key, request.type, text, reply.plain(), events):
            return reply
        known = self.ledger.reply(key, request.type, text)
        return reply if known is None else reply.of(known)

    def settle(self, request: Settlement) -> Receipt:
        """Books the last payments of a run, which is over."""
        self._book(request)
        self.ledger.release_all(request.run)
        return Receipt()

    def _deliver(self, request: SaleRequest) -> tuple[SaleReply, dict[str, Any]]:
        """Her gradient, and what her own view has of it."""
        perturbation = self.owner.perturbation(request.terms)
        cells: dict[str, Any] = {
            "privacy_loss": request.privacy_loss,
            "records": request.records,
            "bytes": 0,
            "delta": delta_of(perturbation),
        }
        if request.parameters is None:
            return SaleReply(accepted=True, delivered=True), cells
        key, streams, owner = (request.round, request.buyer), self.owner.streams(), self.owner
        began, parameters = time.thread_time(), unpacked(request.parameters)
        raw = owner.update(request.terms, parameters, request.records, streams, key)
        self.seconds_in_model += time.thread_time() - began
        loss = request.privacy_loss
        gradient, release = owner.perturbed(request.terms, raw, loss, streams, key)
        norm = float(release.norms[0])
        known = {"norm": norm, "clipped": norm > request.terms.clip} if np.isfinite(norm) else {}
        cells |= {"bytes": 8 * len(gradient), "finite": bool(release.finite[0])} | known
        return SaleReply(accepted=True, delivered=True, gradient=packed(gradient)), cells

    def _judged(
        self, key: Key, terms: Terms, bid: ReportColumns, loss: float, payment: float, size: float
    ) -> tuple[DecisionReason, str | None]:
        """Whether she sells this, and if she does, the token of a promise in her ledger."""
        if loss > float(bid.privacy_budget[0]) * WITHIN or size > self.owner.size:
            raise MessageError("the broker asks for more than her bid offers")
        if not self.owner.agrees(loss, size, payment):
            return DecisionReason.BELOW_COST, None
        delta = delta_of(self.owner.perturbation(terms))
        token = self.ledger.reserve(key, loss, payment, delta)
        return DecisionReason.LIFETIME_BUDGET if token is None else DecisionReason.ACCEPTED, token

    def _bid_of(self, key: Key, terms: Terms) -> ReportColumns:
        """Her bid of the round; who has not bid sells nothing, under no terms but hers."""
        kept = self.ledger.answered(key, BidRequest.type)
        bid = None if kept is None else BidReply.of(kept)
        if bid is None or bid.privacy_budget is None:
            raise MessageError(f"she has not bid in round {key.round}, so there is nothing to sell")
        report = self.owner.report(terms, bid.privacy_budget)
        assert report is not None
        return report._replace(privacy_budget=np.array([bid.privacy_budget]))

    def _promised(self, key: Key, loss: float, payment: float) -> None:
        kept = self.ledger.answered(key, OfferRequest.type)
        choice = None if kept is None else Choice.of(kept)
        if choice is None or (choice.privacy_loss, choice.payment) != (loss, payment):
            raise MessageError("the broker asks for another sale than she took from her menu")

    def _book(self, message: BidRequest | Settlement) -> None:
        paid = zip(message.paid_buyers, message.paid_rounds, message.paid, strict=True)
        for buyer, number, amount in paid:
            self.ledger.earn(Key(message.run, buyer, number), amount)

    def _bid_cells(self, columns: ReportColumns) -> dict[str, Any]:
        return {
            "family": self.owner.family,
            "rate": self.owner.rate,
            "privacy_budget": float(columns.privacy_budget[0]),
            "data_size": self.owner.size,
            "value": float(columns.values[0, -1]),
            "values": columns.values[0].tolist(),
        }


def _heard(kind: str, cells: dict[str, Any]) -> OwnEvent:
    return OwnEvent(time.time(), kind, False, cells)


def _said(kind: str, cells: dict[str, Any]) -> OwnEvent:
    return OwnEvent(time.time(), kind, True, cells)


def _decision(reason: DecisionReason, value: float) -> OwnEvent:
    accepted = reason is DecisionReason.ACCEPTED
    return _said("decision", {"accepted": accepted, "reason": int(reason), "value": value})


def _dropout(stage: DropoutStage, reason: DropoutReason) -> OwnEvent:
    return _said("dropout", {"stage": int(stage), "reason": int(reason)})


def _key(request: RoundMessage) -> Key:
    return Key(request.run, request.buyer, request.round)


def _digest(request: Wire) -> str:
    """What makes a request the same one: everything but the payments that come with it."""
    plain = {k: v for k, v in request.plain().items() if not k.startswith("paid")}
    parts = [
        f"{key}={value.hex() if isinstance(value, bytes) else json.dumps(value)}"
        for key, value in sorted(plain.items())
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
