"""What the owners of a cohort truly do after the sale, where some of them cheat."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.cheating_records import CheatRecord
from flmarket_sim.eventlog.log import EventTable
from flmarket_sim.eventlog.record import with_nulls
from flmarket_sim.market.behaviour_cast import HONEST
from flmarket_sim.market.judgement import for_person, honest_money
from flmarket_sim.market.messages import Offers
from flmarket_sim.market.sale_value import sale_values
from flmarket_sim.privacy.release import AfterRelease
from flmarket_sim.randomness import Purpose
from flmarket_sim.strategy.cheats.cheat import (
    CheckedPlan,
    PublicRules,
    RemembersMessages,
    SaleView,
    check_plan,
    check_updates,
)

if TYPE_CHECKING:
    from flmarket_sim.market.cohort import Cohort

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Train = Callable[[Ints, Ints | None, Ints | None], Floats]


class CheatPart(NamedTuple):
    """The sales of a cohort that one cheat decides: `place` is its position in the scenario."""

    place: int
    rows: Ints
    view: SaleView
    plan: CheckedPlan


class CohortCheats:
    """What is truly done, over the c sales of owners who cheat.

    rows         (c,) their rows of the offers
    released_at  (c,) the privacy loss at which each message is perturbed
    lost         (c,) what the records lose by it
    value        (c,) what that costs her; one cost of several names is split among them
    expected     (c,) the money on which she counts
    """

    def __init__(self, cohort: Cohort, offers: Offers, parts: list[CheatPart]) -> None:
        assert cohort.world.cheating is not None
        self.cheats, self.buyer, self.parts = cohort.world.cheating.cheats, cohort.buyer, parts
        self.rows = np.concatenate([part.rows for part in parts])
        self.place = dict(zip(self.rows.tolist(), range(len(self.rows)), strict=True))
        self.part_of = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
        self.released_at = np.concatenate([part.plan.released_at for part in parts])
        self.lost = np.concatenate([part.plan.lost for part in parts])
        self.records = np.concatenate([part.plan.records for part in parts])
        self.scale = np.concatenate([part.plan.scale for part in parts])
        self.repeated = np.concatenate([part.plan.is_repeated() for part in parts])
        self.value = np.concatenate(
            [part.view.cost(part.plan.lost, part.plan.records) for part in parts]
        )
        self.expected = np.concatenate([_expected(cohort, part) for part in parts])
        slots = offers.slots[self.rows]
        self.participants, self.sold = cohort.participants[slots], offers.privacy_loss[self.rows]
        self.sold_records = cohort.records[slots]

    def updates(self, raw: Floats, train: Train) -> Floats:
        """(c, D) what is released in place of the honest updates `raw` of all rows.

        `train(rows, records, labels)` gives the updates of some rows on the first so many of their
        records, with other labels.
        """
        changed: list[Floats] = []
        for part in self.parts:
            plan, updates = part.plan, raw[part.rows].copy()
            fewer = plan.records < part.view.records
            retrained = fewer | (plan.labels is not None)
            if retrained.any():
                records = plan.records[retrained].astype(np.int64)
                updates[retrained] = train(part.rows[retrained], records, plan.labels)
            cheat = self.cheats[part.place]
            with plugin_errors("cheat", cheat.name):
                made = cheat.updates(part.view, updates)
            changed.append(check_updates(cheat.name, made, part.view))
        return np.concatenate(changed)

    def after_release(self) -> AfterRelease:
        """What is done to messages after the perturbation, by rows of the offers."""
        repeated: dict[int, Floats] = {}
        for part in self.parts:
            again = np.flatnonzero(part.plan.is_repeated())
            for position in again.tolist():
                assert part.plan.repeated is not None
                repeated[int(part.rows[position])] = part.plan.repeated[position]
        scale = dict(zip(self.rows.tolist(), self.scale.tolist(), strict=True))
        return AfterRelease({row: by for row, by in scale.items() if by != 1.0}, repeated)

    def sent(self, row: int, message: Floats) -> None:
        """Tells the cheat of a row what has left its owner."""
        cheat = self.cheats[self.parts[int(self.part_of[self.place[row]])].place]
        if isinstance(cheat, RemembersMessages):
            number = int(self.participants[self.place[row]])
            with plugin_errors("cheat", cheat.name):
                cheat.sent(self.buyer, number, message)

    def table(self, cohort: Cohort) -> EventTable:
        """The truth for the log: the event of row rows[i] is number i."""
        record = CheatRecord(
            cheat=np.array([part.place for part in self.parts], np.int8)[self.part_of],
            privacy_loss=self.sold,
            released_at=with_nulls(self.released_at, self.repeated),
            true_privacy_loss=self.lost,
            records=self.sold_records.astype(np.int64),
            true_records=self.records.astype(np.int64),
            scale=self.scale,
            repeated=self.repeated,
            true_value=self.value,
        )
        return cohort.table(record, self.participants)


def plan_cheats(cohort: Cohort, offers: Offers) -> CohortCheats | None:
    """Asks the cheats of a cohort what their owners will do; None if no seller cheats."""
    cast = cohort.world.cheating
    if cast is None or cohort.parameters is None:
        return None
    acting = cast.acting(cohort.people[offers.slots], cohort.round)
    acting = np.where(offers.privacy_loss > 0, acting, HONEST)
    payment = for_person(cohort, offers, offers.payment)
    parts: list[CheatPart] = []
    for place in np.unique(acting[acting != HONEST]).tolist():
        rows = np.flatnonzero(acting == place)
        slots = offers.slots[rows]
        asked = _Asked(
            place, slots, offers.privacy_loss[rows], payment[rows], cohort.records[slots]
        )
        parts.append(CheatPart(place, rows, *_planned(cohort, asked, _cost(cohort, slots))))
    return CohortCheats(cohort, offers, parts) if parts else None


class SaleInTurn(NamedTuple):
    """What an owner who cheats would truly do if she took an option of her menu: the money on which
    she counts, what her records would lose, and on how many of them she would train."""

    expected: float
    lost: float
    records: float


def plan_in_turn(
    cohort: Cohort, slot: int, option: tuple[float, float, float], value: Callable[..., float]
) -> SaleInTurn | None:
    """Asks the cheat of one owner about an option (privacy loss, payment, records) of her menu.

    `value(slot, records, loss)` is what a sale costs her after the sales so far. None if she does
    not cheat. What all owners will do is planned again when the last menu is answered.
    """
    cast = cohort.world.cheating
    if cast is None or cohort.parameters is None:
        return None
    place = int(cast.acting(cohort.people[[slot]], cohort.round)[0])
    if place == HONEST:
        return None

    def cost(loss: Floats, records: Floats) -> Floats:
        loss, records = np.asarray(loss, float), np.asarray(records, float)
        return np.array([value(slot, float(records[0]), float(loss[0]))])

    asked = _Asked(place, np.array([slot]), *(np.array([number]) for number in option))
    part = CheatPart(place, np.zeros(1, np.int64), *_planned(cohort, asked, cost, slot))
    plan = part.plan
    return SaleInTurn(
        float(_expected(cohort, part)[0]), float(plan.lost[0]), float(plan.records[0])
    )


class _Asked(NamedTuple):
    """Sales that one cheat is asked about; the columns (k,) are those of a SaleView."""

    place: int
    slots: Ints
    privacy_loss: Floats
    payment: Floats
    records: Floats


def _planned(
    cohort: Cohort, asked: _Asked, cost: Callable[[Floats, Floats], Floats], *draw: int
) -> tuple[SaleView, CheckedPlan]:
    """What a cheat sees of these sales, and its plan."""
    cast = cohort.world.cheating
    assert cast is not None and cohort.parameters is not None
    view = SaleView(
        round=cohort.round,
        buyer=cohort.buyer,
        owners=cohort.participants[asked.slots],
        privacy_loss=asked.privacy_loss,
        records=asked.records,
        payment=asked.payment,
        parameters=cohort.parameters,
        cost=cost,
        rules=public_rules(cohort),
        rng=cast.streams.generator(
            Purpose.CHEATING, asked.place, cohort.buyer, cohort.round, *draw
        ),
    )
    cheat = cast.cheats[asked.place]
    with plugin_errors("cheat", cheat.name):
        return view, check_plan(cheat.name, cheat.plan(view), view)


def public_rules(cohort: Cohort) -> PublicRules:
    """What everybody knows about the market of a cohort."""
    world = cohort.world
    assert cohort.parameters is not None
    return PublicRules(
        perturbation=world.randomisers[cohort.buyer].perturbation,
        clip=world.scenario.privacy.clip,
        dimension=len(cohort.parameters),
        classes=0 if world.data is None else len(world.data.classes),
        bidders=world.scenario.market.bidders,
        asked_share=world.scenario.market.bidders / len(world.population),
        rounds=world.scenario.rounds,
        inspection=None if cohort.inspection is None else cohort.inspection.public,
    )


def _cost(cohort: Cohort, slots: Ints) -> Callable[[Floats, Floats], Floats]:
    people, several_names = cohort.world.population, bool(cohort.accounts)
    persons = cohort.people[slots]

    def cost(loss: Floats, records: Floats) -> Floats:
        loss, records = np.asarray(loss, float), np.asarray(records, float)
        return sale_values(people, persons, records, loss, several_names)

    return cost


def _expected(cohort: Cohort, part: CheatPart) -> Floats:
    """The money on which the owners of a part count: by their plan, or as honest owners do."""
    if part.plan.expected is not None:
        return part.plan.expected
    return honest_money(cohort.world, part.view.payment)
