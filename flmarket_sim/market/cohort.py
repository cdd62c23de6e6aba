"""A cohort: the owners whom an auction asks in one round, and the arithmetic that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction, Offer
from flmarket_sim.eventlog import BROKER
from flmarket_sim.eventlog.log import EventTable
from flmarket_sim.eventlog.record import Record
from flmarket_sim.eventlog.schema import DropoutReason, DropoutRecord, DropoutStage
from flmarket_sim.learning.local_training import processed_records
from flmarket_sim.market.cohort_cheats import CohortCheats, plan_cheats
from flmarket_sim.market.cohort_gradients import CohortGradients
from flmarket_sim.market.cohort_reports import PRESENT, make_reports
from flmarket_sim.market.inspection import Inspection
from flmarket_sim.market.judgement import Judgement, judge
from flmarket_sim.market.ledger import JointAccount
from flmarket_sim.market.messages import Offers, ReportColumns
from flmarket_sim.market.owner_draws import draw_owners
from flmarket_sim.market.sale_value import sale_values
from flmarket_sim.market.world import World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Cohort:
    """The bidders of a round, as columns over `slot` = 0..s-1.

    What each owner decides is computed here for all owners at once; her process says when she acts.
    A slot is a participant: an asked owner, or a further name of hers. `people` (s,) are the owners
    behind the participants (s,), `accounts` the privacy accounts of owners with several names.
    `variance` is that of a released gradient at given privacy losses, `parameters` (D,) the public
    model, and `inspection` what the broker does to find owners who cheat.
    """

    def __init__(
        self,
        world: World,
        buyer: int,
        round_number: int,
        model: Any,
        auction: Auction,
        money: float,
        variance: Callable[[Floats], Floats],
        parameters: Floats | None = None,
        inspection: Inspection | None = None,
    ) -> None:
        self.parameters, self.inspection = parameters, inspection
        self.world, self.buyer, self.round, self.model = world, buyer, round_number, model
        self.variance = variance
        owners = world.bidders(buyer, round_number)
        draws = draw_owners(world, buyer, round_number, owners)
        made = make_reports(world, (buyer, round_number), owners, draws, auction, money)
        self.participants, self.people, self.misreports = (
            made.participants,
            made.people,
            made.misreports,
        )
        self.accounts: dict[int, JointAccount] = {}
        if self.misreports is not None and self.misreports.several_names:
            draws = draws.of(self.misreports.origin)
            self.accounts = self._joint_accounts(self.misreports.origin, len(owners))
        self.delays, self.drops_out = draws.delays, draws.drops_out.tolist()
        self.present: list[bool] = (made.absence == PRESENT).tolist()
        self.numbers: list[int] = self.participants.tolist()
        self.reports = made.columns
        self.bid_rows = _rows(made.columns)
        self.records = made.columns.data_size  # (s,) records that a sale is of
        self.bids = self.table(made.record, self.participants)
        self.absences = self.table(
            DropoutRecord(stage=DropoutStage.BID, reason=made.absence), self.participants
        )
        self.dropouts = self.table(
            DropoutRecord(stage=DropoutStage.GRADIENT, reason=DropoutReason.DROPPED_OUT),
            self.participants,
        )
        speed = world.population.records_per_second
        self.computing_seconds: list[float] | None = None
        if speed is not None:
            work = processed_records(world.scenario.learning, self.records)
            self.computing_seconds = (work / speed[self.people]).tolist()
        self.choose: Callable[[int, Offer], None]
        self._judgement: Judgement | None = None
        self._gradients: CohortGradients | None = None
        self._cheats: tuple[CohortCheats | None] | None = None
        self._sales: Offers

    def table(self, record: Record, senders: Ints) -> EventTable:
        """Events of this round that its owners may send to the broker."""
        return self.world.log.table(
            record, round=self.round, buyer=self.buyer, sender=senders, receiver=BROKER
        )

    def write(self, record: Record, *, sender: Any = BROKER, receiver: Any = BROKER) -> None:
        """Logs events of this round that happen now."""
        self.world.log.write(
            record,
            time=self.world.env.now,
            round=self.round,
            buyer=self.buyer,
            sender=sender,
            receiver=receiver,
        )

    @property
    def judgement(self) -> Judgement:
        """How owners judge the offers made to them so far."""
        assert self._judgement is not None
        return self._judgement

    def judge(self, offers: Offers) -> Judgement:
        """How each owner judges the offer made to her, by rows of the offers."""
        if self._judgement is None:
            self._judgement = judge(self, offers)
        return self._judgement

    def sell_in_turn(self, judgement: Judgement, choose: Callable[[int, Offer], None]) -> None:
        """Owners will see menus: `choose(row, menu)` is an owner's choice and fills `judgement`."""
        self._judgement, self.choose = judgement, choose

    def sell_records(self, slots: Ints, size: Floats) -> None:
        """The auction buys so many records of these owners, rather than all that they offer."""
        if self.records is self.reports.data_size:
            self.records = self.records.copy()
        self.records[slots] = size

    def true_value(self, slots: Ints, privacy_loss: Floats) -> Floats:
        """The true value of these losses to the owners of these slots, on the records that they
        sell."""
        people, sold = self.world.population, self.records[slots]
        return sale_values(people, self.people[slots], sold, privacy_loss, bool(self.accounts))

    def cheats(self, offers: Offers) -> CohortCheats | None:
        """What the owners who cheat truly do; it is decided once, when it is first asked for."""
        if self._cheats is None:
            self._cheats = (plan_cheats(self, offers),)
        return self._cheats[0]

    def true_costs(self, offers: Offers, rows: Ints) -> Floats:
        """(r,) what the sales of these rows truly cost their owners, cheats counted."""
        cheats = self.cheats(offers)
        loss, records = offers.privacy_loss, self.records[offers.slots]
        if cheats is not None:
            loss, records = loss.copy(), records.copy()
            loss[cheats.rows], records[cheats.rows] = cheats.lost, cheats.records
        persons, several = self.people[offers.slots], bool(self.accounts)
        return sale_values(self.world.population, persons[rows], records[rows], loss[rows], several)

    def agree(self, offers: Offers) -> None:
        """The sales on which `gradients` will be computed."""
        self._sales = offers

    def gradients(self, parameters: Floats | None) -> CohortGradients:
        """All gradients of the round, computed together when the first owner needs hers."""
        if self._gradients is None:
            self._gradients = CohortGradients(self, parameters, self._sales)
        return self._gradients

    def _joint_accounts(self, origin: Ints, asked: int) -> dict[int, JointAccount]:
        """By slot, one account for all names of a person who has several."""
        joint = {
            slot: JointAccount(self.world.ledger, int(self.people[slot]))
            for slot in np.unique(origin[asked:])
        }
        return {slot: joint[o] for slot, o in enumerate(origin.tolist()) if o in joint}


def _rows(reports: ReportColumns) -> list[tuple[Floats, float, float]]:
    """The reports one by one, each with memory of its own: a bid must not lead to other bids."""
    rows = (row.copy() for row in reports.values)
    return list(zip(rows, reports.privacy_budget.tolist(), reports.data_size.tolist(), strict=True))
