"""Owners: a process for each one who was asked, and the columns they share the arithmetic of."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim import valuation
from flmarket_sim.eventlog import BROKER
from flmarket_sim.market.mail import Inbox, Letter
from flmarket_sim.market.messages import (
    Allocation,
    BidMessage,
    Broadcast,
    Decision,
    GradientMessage,
    Offers,
    Reports,
)
from flmarket_sim.market.world import World
from flmarket_sim.privacy import clip_l1, noise_scale, perturb, unit_noise
from flmarket_sim.randomness import Purpose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# messages between broker and owner, each with a delay of its own, and what else an owner draws in a round
ANNOUNCE, BID, ALLOCATE, DECIDE, MODEL, GRADIENT, PAY, AVAILABLE, DROP = range(9)
ACCEPTED, BELOW_COST, OVER_LIFETIME = range(3)  # schema.DECISION_REASONS
AWAY, SPENT, DROPPED = range(3)  # schema.DROPOUT_REASONS
NO_BID, NO_GRADIENT = range(2)  # schema.DROPOUT_STAGES


class Cohort:
    """The owners whom one buyer's auction asks in one round, as columns over `slot` = 0..n-1.

    Everything a single owner decides is computed here for all of them at once; when she acts is up to her process.
    """

    def __init__(self, world: World, buyer: int, round_number: int, model: Any) -> None:
        self.world, self.buyer, self.round, self.model = world, buyer, round_number, model
        self.owners = world.bidders(buyer, round_number)
        self.names: list[int] = self.owners.tolist()
        self._draw_world()
        self._make_reports()
        self._judged: tuple[Offers, list[bool], list[float]] | None = None
        self._computed: _Gradients | None = None

    def _draw_world(self) -> None:
        """Delays, absence and dropouts of every owner."""
        world, n = self.world, len(self.owners)
        spec = world.scenario.owners
        unreliable = spec.availability < 1.0 or spec.dropout > 0.0
        if world.delay.random or unreliable:
            uniform = world.streams.per_owner(Purpose.WORLD, self.owners, DROP + 1, self.buyer, self.round)
        else:
            uniform = np.zeros((n, DROP + 1))
        self.delays: list[list[float]] = world.delay.seconds(uniform[:, :AVAILABLE].T).tolist()
        self.away: list[bool] = (uniform[:, AVAILABLE] >= spec.availability).tolist()
        self.drops: list[bool] = (uniform[:, DROP] < spec.dropout).tolist()
        speed = world.population.records_per_second
        self.compute: list[float] | None = None
        if speed is not None:
            self.compute = (world.population.data_size[self.owners] / speed[self.owners]).tolist()

    def _make_reports(self) -> None:
        """What each owner will bid: the truth, up to what her lifetime budget has left."""
        world, people = self.world, self.world.population
        budget = people.privacy_budget[self.owners]
        values = world.truthful_values[self.owners]
        self.spent_out: list[bool] | None = None
        if world.ledger.limited:
            left = world.ledger.remaining(self.owners)
            capped = left < budget
            self.spent_out = (left <= 1e-9 * budget).tolist()
            budget = np.where(capped, np.maximum(left, 1e-12), budget)
            levels = np.arange(1, values.shape[1] + 1) / values.shape[1]
            values = people.value(self.owners[:, None], budget[:, None] * levels)
        size = people.data_size[self.owners]
        self.reports = Reports(values, budget, size.astype(float))
        self.bid_rows = list(
            zip(
                people.family[self.owners].tolist(),
                people.rate[self.owners].tolist(),
                budget.tolist(),
                size.tolist(),
                values[:, -1].tolist(),
                strict=True,
            )
        )

    def judge(self, offers: Offers) -> tuple[list[bool], list[float]]:
        """For each row of the offers: does it pay for its owner, and what does she lose by it?"""
        if self._judged is None or self._judged[0] is not offers:
            value = self.true_value(offers.slots, offers.privacy_loss)
            if self.world.scenario.owners.accept == "always":
                pays = np.ones(len(value), bool)
            else:
                pays = offers.payment >= value * (1 - 1e-9)
            self._judged = (offers, pays.tolist(), value.tolist())
        return self._judged[1], self._judged[2]

    def true_value(self, slots: Ints, privacy_loss: Floats) -> Floats:
        """What these losses are worth to the owners of these slots, on the records they offered."""
        people, owners = self.world.population, self.owners[slots]
        step_cost = people.rate[owners] * people.data_size[owners] * people.privacy_budget[owners]
        size = self.reports.data_size[slots]
        return valuation.value(people.family[owners], people.rate[owners], size, privacy_loss, step_cost)

    def gradients(self, broadcast: Broadcast) -> _Gradients:
        """All gradients of the round in one pass, at the moment of the broadcast."""
        if self._computed is None:
            self._computed = _Gradients(self, broadcast)
        return self._computed


class _Gradients:
    """Clipped gradients of all bidders (the log wants the true error) and the perturbed ones of the winners."""

    def __init__(self, cohort: Cohort, broadcast: Broadcast) -> None:
        offers, world = broadcast.offers, cohort.world
        clip = world.scenario.privacy.clip
        self.cohort = cohort
        self.offers = offers
        self.learns = broadcast.parameters is not None
        with np.errstate(divide="ignore"):
            self.scale: list[float] = noise_scale(offers.privacy_loss, clip).tolist()
        self.loss: list[float] = offers.privacy_loss.tolist()
        if broadcast.parameters is None:
            return
        people, data = world.population, world.data
        assert data is not None and people.rows is not None and people.offsets is not None
        owners = cohort.owners[offers.slots]
        sizes = cohort.reports.data_size[offers.slots].astype(np.int64)
        first = people.offsets[owners]
        ends = np.cumsum(sizes)
        rows = people.rows[np.repeat(first - (ends - sizes), sizes) + np.arange(int(ends[-1]))]
        raw = cohort.model.gradients(broadcast.parameters, data, rows, sizes)
        self.clipped, norms = clip_l1(raw, clip)
        self.norms: list[float] = norms.tolist()
        self.owners: list[int] = owners.tolist()

    def perturbed(self, row: int) -> Floats | None:
        """The gradient of a row as it leaves its owner."""
        if not self.learns:
            return None
        cohort, clip = self.cohort, self.cohort.world.scenario.privacy.clip
        unit = unit_noise(
            cohort.world.streams, self.clipped.shape[1], self.owners[row], cohort.round, cohort.buyer
        )
        return perturb(self.clipped[row], unit, self.loss[row], clip)

    def true_error(self, delivered: Floats, weights: Floats) -> tuple[float, float]:
        """Squared distance of a delivered gradient to the noiseless one of all bidders, and the bias in it.

        For the log only: nobody in the market can know this.
        """
        size = self.cohort.reports.data_size[self.offers.slots]
        ideal = (size / size.sum()) @ self.clipped
        bias = weights @ self.clipped - ideal
        return float(np.square(delivered - ideal).sum()), float(np.square(bias).sum())


def owner(
    cohort: Cohort, slot: int, announcement: Letter, inboxes: tuple[Inbox, Inbox, Inbox]
) -> Generator[Event, Any, None]:
    """One asked owner's round: bid, decide, compute, send, be paid. An answer of None means: too late."""
    world = cohort.world
    env, log, ledger = world.env, world.log, world.ledger
    delays = cohort.delays
    me = cohort.names[slot]
    envelope = (cohort.round, cohort.buyer, me, BROKER)

    yield announcement
    if cohort.away[slot]:
        log.row("dropout", env.now, *envelope, NO_BID, AWAY)
        return
    if cohort.spent_out is not None and cohort.spent_out[slot]:
        log.row("dropout", env.now, *envelope, NO_BID, SPENT)
        return
    reply = Letter(env)
    log.row("bid", env.now, *envelope, *cohort.bid_rows[slot], None)
    inboxes[0].send(BidMessage(slot, cohort.reports, reply), delays[BID][slot])

    allocation: Allocation | None = yield reply
    if allocation is None:
        return
    row, offers = allocation
    loss = float(offers.privacy_loss[row])
    if loss <= 0.0:
        return
    pays, value = cohort.judge(offers)
    reason = ACCEPTED
    if not pays[row]:
        reason = BELOW_COST
    elif ledger.limited and not ledger.reserve(me, loss):
        reason = OVER_LIFETIME
    accepted = reason == ACCEPTED
    reply = Letter(env)
    log.row("decision", env.now, *envelope, accepted, reason, value[row])
    inboxes[1].send(Decision(row, slot, accepted, reply), delays[DECIDE][slot])
    if not accepted:
        return

    broadcast: Broadcast | None = yield reply
    if broadcast is None:
        ledger.release(me, loss)
        return
    computed = cohort.gradients(broadcast)
    if cohort.compute is not None:
        yield env.timeout(cohort.compute[slot])
    if cohort.drops[slot]:
        ledger.release(me, loss)
        log.row("dropout", env.now, *envelope, NO_GRADIENT, DROPPED)
        return
    gradient = computed.perturbed(row)
    ledger.spend(me, loss)
    norm = computed.norms[row] if computed.learns else None
    clipped = norm > world.scenario.privacy.clip if norm is not None else None
    size = 0 if gradient is None else gradient.nbytes
    log.row(
        "gradient", env.now, *envelope, loss, cohort.bid_rows[slot][3], norm, clipped, computed.scale[row], size
    )
    reply = Letter(env)
    inboxes[2].send(GradientMessage(row, slot, gradient, reply), delays[GRADIENT][slot])
    yield reply
