"""Owners: a process for each one who was asked, and the columns they share the arithmetic of."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim.auctions.auction import Auction
from flmarket_sim.eventlog import BROKER
from flmarket_sim.eventlog.log import EventTable
from flmarket_sim.eventlog.record import Record
from flmarket_sim.eventlog.schema import (
    BidRecord,
    DecisionReason,
    DropoutReason,
    DropoutRecord,
    DropoutStage,
    GradientRecord,
)
from flmarket_sim.market.cohort_misreports import HONEST, CohortMisreports, step_shares, tell
from flmarket_sim.market.judgement import Judgement, judge
from flmarket_sim.market.ledger import JointAccount
from flmarket_sim.market.mail import Inbox, Letter
from flmarket_sim.market.messages import (
    Allocation,
    BidMessage,
    Broadcast,
    Decision,
    GradientMessage,
    MenuMessage,
    Offers,
    ReportColumns,
)
from flmarket_sim.market.world import World
from flmarket_sim.owners import valuation
from flmarket_sim.owners.population import Population
from flmarket_sim.privacy import Release, noise_scale
from flmarket_sim.randomness import Purpose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# messages between broker and owner, each with a delay of its own, and what else an owner draws in a round
ANNOUNCE, BID, ALLOCATE, DECIDE, MODEL, GRADIENT, PAY, AVAILABLE, DROP = range(9)


class Cohort:
    """The owners whom one buyer's auction asks in one round, as columns over `slot` = 0..n-1.

    Everything a single owner decides is computed here for all of them at once; when she acts is up to her process.
    `owners` are the participants, `people` (the same, unless somebody uses false names) who they are in the population.
    """

    def __init__(
        self,
        world: World,
        buyer: int,
        round_number: int,
        model: Any,
        auction: Auction,
        money: float,
    ) -> None:
        self.world, self.buyer, self.round, self.model = world, buyer, round_number, model
        self.owners = self.people = world.bidders(buyer, round_number)
        self.accounts: dict[int, JointAccount] = {}
        self.lies: CohortMisreports | None = None
        self._draw_world()
        self._make_reports(auction, money)
        self.names: list[int] = self.owners.tolist()
        reasons = np.array([-1 if reason is None else reason for reason in self.silent], np.int8)
        self.absences = self._table(DropoutRecord(stage=DropoutStage.BID, reason=reasons))
        self.dropouts = self._table(
            DropoutRecord(stage=DropoutStage.GRADIENT, reason=DropoutReason.DROPPED_OUT)
        )
        self.letters = _as_letters(self.reports)
        self.records = (
            self.reports.data_size
        )  # (s,) that a sale is of: all that she offers, unless the auction buys fewer
        self._judged: Judgement | None = None
        self._computed: Gradients | None = None
        self._sales: Offers
        self.choose: Callable[[int, Any], None]

    def _draw_world(self) -> None:
        """Delays, absence and dropouts of every owner."""
        world, n = self.world, len(self.owners)
        spec = world.scenario.owners
        unreliable = spec.availability < 1.0 or spec.dropout > 0.0
        if world.delay.random or unreliable:
            uniform = world.streams.per_owner(
                Purpose.WORLD, self.owners, DROP + 1, self.buyer, self.round
            )
        else:
            uniform = np.zeros((n, DROP + 1))
        self.delays: list[list[float]] = world.delays(uniform[:, :AVAILABLE].T).tolist()
        away = uniform[:, AVAILABLE] >= spec.availability
        self.silent: list[DropoutReason | None] = [
            DropoutReason.AWAY if gone else None for gone in away.tolist()
        ]
        self.drops: list[bool] = (uniform[:, DROP] < spec.dropout).tolist()
        speed = world.population.records_per_second
        self.compute: list[float] | None = None
        if speed is not None:
            self.compute = (world.population.data_size[self.owners] / speed[self.owners]).tolist()

    def _make_reports(self, auction: Auction, money: float) -> None:
        """What each owner will bid: the truth, up to what her lifetime budget has left, unless her behaviour is another."""
        world, people = self.world, self.world.population
        budget = people.privacy_budget[self.owners]
        values = world.truthful_values[self.owners]
        if world.ledger.limited:
            left = world.ledger.remaining(self.owners)
            capped = left < budget
            for slot in np.flatnonzero(left <= 1e-9 * budget).tolist():
                if self.silent[slot] is None:
                    self.silent[slot] = DropoutReason.LIFETIME_BUDGET
            budget = np.where(capped, np.maximum(left, 1e-12), budget)
            levels = np.arange(1, values.shape[1] + 1) / values.shape[1]
            values = people.value(self.owners[:, None], budget[:, None] * levels)
        size = people.data_size[self.owners]
        self.reports = ReportColumns(values, budget, size.astype(float))
        spelled_out: Any = None
        if (
            world.ledger.limited
        ):  # a step valuation is of the true budget: family and rate do not say it once capped
            spelled_out = np.full(len(size), None, dtype=object)
            for slot in np.flatnonzero(
                capped & (people.family[self.owners] == valuation.STEP)
            ).tolist():
                spelled_out[slot] = values[slot].tolist()
        if world.cast is not None:
            there = np.array([reason is None for reason in self.silent])
            able = budget > 1e-9 * people.privacy_budget[self.owners]
            key = (self.buyer, self.round)
            self.lies = tell(
                world.cast, people, key, self.owners, self.reports, there, able, auction, money
            )
        if self.lies is not None:
            self._disguise(self.lies, spelled_out)
            return
        self.bids = self._table(
            BidRecord(
                family=people.family[self.owners],
                rate=people.rate[self.owners],
                privacy_budget=budget,
                data_size=size,
                value=values[:, -1],
                values=spelled_out,
                behaviour=None,
                person=None,
                true_privacy_budget=None,
                true_data_size=None,
                true_value=None,
            )
        )

    def _table(self, record: Record) -> EventTable:
        return self.world.log.table(
            record, round=self.round, buyer=self.buyer, sender=self.owners, receiver=BROKER
        )

    def _disguise(self, lies: CohortMisreports, spelled_out: Any) -> None:
        """Puts lies in the place of the truth. A person's names live where she lives: same delays, absence and dropouts."""
        world, truth, origin = self.world, self.reports, lies.origin
        lying = lies.code != HONEST
        if lies.several_names:
            self.people, self.owners = self.owners[origin], lies.names
            self.delays = [[row[slot] for slot in origin.tolist()] for row in self.delays]
            self.silent = [self.silent[slot] for slot in origin.tolist()]
            self.drops = [self.drops[slot] for slot in origin.tolist()]
            joint = {
                slot: JointAccount(world.ledger, int(self.people[slot]))
                for slot in np.unique(origin[len(truth[0]) :])
            }
            self.accounts = {slot: joint[o] for slot, o in enumerate(origin.tolist()) if o in joint}
        self.reports = lies.reports
        speed = world.population.records_per_second
        if speed is not None:
            self.compute = (self.reports.data_size / speed[self.people]).tolist()
        values = lies.spelled_out()
        if spelled_out is not None:
            values = np.where(lying, values, spelled_out[origin])
        true_value = truth.values[origin, -1] * (lies.true_size / truth.data_size[origin])
        self.bids = self._table(
            BidRecord(
                family=lies.family,
                rate=lies.rate,
                privacy_budget=self.reports.privacy_budget,
                data_size=self.reports.data_size.astype(np.int64),
                value=self.reports.values[:, -1],
                values=values,
                behaviour=_or_null(lies.code, lying),
                person=_or_null(self.people, self.people != self.owners),
                true_privacy_budget=_or_null(truth.privacy_budget[origin], lying),
                true_data_size=_or_null(lies.true_size.astype(np.int64), lying),
                true_value=_or_null(true_value, lying),
            )
        )

    @property
    def judged(self) -> Judgement:
        """How owners see the offers made to them so far."""
        assert self._judged is not None
        return self._judged

    def judge(self, offers: Offers) -> Judgement:
        """How each owner sees the offer made to her, by rows of the offers."""
        if self._judged is None:
            self._judged = judge(self, offers)
        return self._judged

    def sell_in_turn(self, judgement: Judgement, choose: Callable[[int, Any], None]) -> None:
        """Owners will see menus one after the other; `choose(row, menu)` is an owner's choice, and fills `judgement`."""
        self._judged, self.choose = judgement, choose

    def sell_records(self, slots: Ints, size: Floats) -> None:
        """The auction buys so many records of these owners."""
        if (
            self.records is self.reports.data_size
        ):  # copied once: in turn, this is called for every owner
            self.records = self.records.copy()
        self.records[slots] = size

    def true_value(self, slots: Ints, privacy_loss: Floats) -> Floats:
        """What these losses are worth to the owners of these slots, on the records that they sell."""
        people, owners = self.world.population, self.people[slots]
        size = self.records[slots]
        value = people.value(owners, privacy_loss, size)
        if self.accounts:
            value = value * step_shares(people.family[owners], owners, size, privacy_loss)
        return value

    def compute_at(self, offers: Offers) -> None:
        """The sales that owners agreed to: what `gradients` will be of."""
        self._sales = offers

    def gradients(self, parameters: Floats | None) -> Gradients:
        """All gradients of the round in one pass, at the moment of the broadcast."""
        if self._computed is None:
            self._computed = Gradients(self, parameters, self._sales)
        return self._computed


def _as_letters(reports: ReportColumns) -> list[tuple[Floats, float, float]]:
    """The rows of a table, each with memory of its own: what a bid has in it is one row."""
    rows = (row.copy() for row in reports.values)
    return list(zip(rows, reports.privacy_budget.tolist(), reports.data_size.tolist(), strict=True))


def _or_null(column: Any, known: Any) -> Any:
    """A column of the log that says nothing where it is not `known`."""
    return np.where(known, column.astype(object), None) if known.any() else None


class Gradients:
    """Clipped gradients of all bidders (the log wants the true error), perturbed one by one as owners send them.

    Keeps no way back to its cohort: these arrays are large, and nothing but their last reader should hold them.
    """

    def __init__(self, cohort: Cohort, parameters: Floats | None, offers: Offers) -> None:
        world = cohort.world
        clip, self.key = world.scenario.privacy.clip, (cohort.round, cohort.buyer)
        self.owners = cohort.owners[offers.slots]
        self.sizes = cohort.records[offers.slots].astype(np.int64)
        self.offered = cohort.reports.data_size[offers.slots]
        self.release: Release | None = None
        norms: Any = None
        cut: Any = None
        if parameters is not None:
            skipped = None if cohort.lies is None else cohort.lies.first_record[offers.slots]
            rows = records(world.population, cohort.people[offers.slots], self.sizes, skipped)
            raw = cohort.model.gradients(parameters, world.data, rows, self.sizes)
            self.release = Release(raw, offers.privacy_loss.tolist(), clip, world.noise)
            norms = self.release.norms
            cut = norms > clip
        with np.errstate(divide="ignore"):
            scale = noise_scale(offers.privacy_loss, clip)
        size = 0 if self.release is None else self.release.clipped[0].nbytes
        self.sent = world.log.table(
            GradientRecord(
                privacy_loss=offers.privacy_loss,
                records=self.sizes,
                norm=norms,
                clipped=cut,
                noise_scale=scale,
                bytes=size,
            ),
            round=cohort.round,
            buyer=cohort.buyer,
            sender=self.owners,
            receiver=BROKER,
        )

    def perturbed(self, row: int) -> Floats | None:
        """The gradient of a row as it leaves its owner."""
        return (
            None
            if self.release is None
            else self.release.leave(row, int(self.owners[row]), *self.key)
        )

    def true_error(self, delivered: Floats, weights: Floats) -> tuple[float, float]:
        """Squared distance of a delivered gradient to the noiseless one of all bidders, and the bias in it.

        For the log only: nobody in the market can know this.
        """
        assert self.release is not None
        ideal = (self.offered / self.offered.sum()) @ self.release.clipped
        bias = weights @ self.release.clipped - ideal
        return float(np.square(delivered - ideal).sum()), float(np.square(bias).sum())


def records(people: Population, owners: Ints, sizes: Ints, skipped: Ints | None = None) -> Ints:
    """Row numbers of `sizes` records of each owner, owner after owner: her first, or those after `skipped` others."""
    assert people.rows is not None and people.offsets is not None
    ends = np.cumsum(sizes)
    begin = people.offsets[owners] if skipped is None else people.offsets[owners] + skipped
    start = np.repeat(begin - (ends - sizes), sizes)
    return np.asarray(people.rows[start + np.arange(int(ends[-1]))])


def owner(
    cohort: Cohort, slot: int, inboxes: tuple[Inbox, Inbox, Inbox]
) -> Generator[Event, Any, None]:
    """An owner's round, from the announcement's arrival on: bid, decide, compute, send, be paid.

    An answer of None means: too late.
    """
    world = cohort.world
    env, ledger = world.env, cohort.accounts.get(slot, world.ledger)
    delays, me = cohort.delays, cohort.names[slot]

    if cohort.silent[slot] is not None:
        cohort.absences.happen(slot, env.now)
        return
    reply = Letter(env)
    cohort.bids.happen(slot, env.now)
    inboxes[0].send(BidMessage(slot, *cohort.letters[slot], reply), delays[BID][slot])

    answer: Allocation | MenuMessage | None = yield reply
    if answer is None:
        return
    row, inbox, judged = answer.row, inboxes[1], cohort.judged
    if isinstance(answer, MenuMessage):
        inbox = answer.inbox
        cohort.choose(row, answer.offer)
    elif answer.privacy_loss == 0.0:
        return
    loss, accepted = judged.privacy_loss[row], judged.accepts[row]
    if accepted and ledger.limited and not ledger.reserve(me, loss):
        judged.decline(row, DecisionReason.LIFETIME_BUDGET)
        accepted = False
    reply = Letter(env)
    judged.decisions.happen(row, env.now)
    inbox.send(
        Decision(row, slot, accepted, loss, judged.payment[row], reply), delays[DECIDE][slot]
    )
    if not accepted:
        return

    broadcast: Broadcast | None = yield reply
    if broadcast is None:
        ledger.release(me, loss)
        return
    computed = cohort.gradients(broadcast.parameters)
    if cohort.compute is not None:
        yield env.timeout(cohort.compute[slot])
    if cohort.drops[slot]:
        ledger.release(me, loss)
        cohort.dropouts.happen(slot, env.now)
        return
    gradient = computed.perturbed(row)
    ledger.spend(me, loss)
    computed.sent.happen(row, env.now)
    reply = Letter(env)
    inboxes[2].send(GradientMessage(row, slot, gradient, reply), delays[GRADIENT][slot])
    yield reply
