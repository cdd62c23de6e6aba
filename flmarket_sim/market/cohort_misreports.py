"""What a cohort reports because some of its owners have behaviours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction
from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.market.behaviour_cast import HONEST, Cast
from flmarket_sim.market.messages import ReportColumns
from flmarket_sim.market.world import World
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.population import Population
from flmarket_sim.owners.valuation import STEP
from flmarket_sim.randomness import Purpose
from flmarket_sim.strategy.behaviours.behaviour import BehaviourReports, CohortView, check_reports

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
LARGEST_NAME = 2**31 - 1  # participants are 32-bit numbers in the log


class BehaviourPart(NamedTuple):
    """The part of a cohort that one behaviour reports for.

    behaviour  its position in the scenario's list
    reports    row r is the report of slot slots[r], for the owner at position of[r] of the view
    """

    behaviour: int
    view: CohortView
    reports: BehaviourReports
    slots: Ints
    of: Ints


@dataclass(frozen=True)
class CohortMisreports:
    """The reports of a cohort with behaviours. Columns over the n asked owners, then further names.

    names         (s,) participants' numbers: a further name j of owner i is i + j N
    origin        (s,) the slot of the person
    code          (s,) behaviour; HONEST for owners without one
    first_record  (s,) where the records of this name begin among the person's records
    true_size     (s,) records that are truly behind a report
    family, rate  (s,) what the reports pretend to be, if anything
    """

    names: Ints
    origin: Ints
    code: Codes
    reports: ReportColumns
    first_record: Ints
    true_size: Floats
    family: Any
    rate: Any
    parts: list[BehaviourPart]

    @property
    def several_names(self) -> bool:
        return len(self.names) > len(np.unique(self.origin))


def misreport(
    world: World,
    key: tuple[int, int],
    owners: Ints,
    truthful: ReportColumns,
    present: NDArray[np.bool_],
    able: NDArray[np.bool_],
    auction: Auction,
    money: float,
) -> CohortMisreports | None:
    """Asks the behaviours of the asked owners for their reports; None if no bidder has a behaviour.

    `key` is (buyer, round); `present` (n,) says who will bid, `able` (n,) who has privacy to sell.
    """
    cast, people = world.cast, world.population
    assert cast is not None
    acting = cast.acting(owners, key[1])
    lying = (acting != HONEST) & present & able
    if not lying.any():
        return None
    column = np.cumsum(able) - 1
    asked = _types(people, owners[able], truthful.privacy_budget[able])
    bids = truthful.at(able).batch()
    parts: list[BehaviourPart] = []
    slots_used = len(owners)
    for place in np.unique(acting[lying]).tolist():
        first_slots = np.flatnonzero(lying & (acting == place))
        rng = cast.streams.generator(Purpose.REPORT, place, *key)
        view = CohortView(
            round=key[1],
            buyer=key[0],
            owners=owners[first_slots],
            slots=column[first_slots],
            budget=money,
            auction=auction,
            rng=rng,
            asked=asked,
            truthful=bids,
            population=people,
        )
        behaviour = cast.behaviours[place]
        with plugin_errors("behaviour", behaviour.name):
            reports = check_reports(behaviour.name, behaviour.report(view), view)
        of = np.asarray(reports.of)
        further_slots = slots_used + np.arange(len(of) - len(first_slots))
        slots_used += len(further_slots)
        slots = _slots(of, first_slots, further_slots)
        parts.append(BehaviourPart(place, view, reports, slots, of))
    return _combined(owners, truthful, people, parts, slots_used, cast)


def _slots(of: Ints, first: Ints, further: Ints) -> Ints:
    """(r,) the slot of each row: an owner's first row has her slot, others further ones."""
    slots, is_further = np.empty(len(of), np.int64), np.ones(len(of), np.bool_)
    is_further[_first_rows(of)] = False
    slots[_first_rows(of)] = first
    slots[is_further] = further
    return slots


def _types(people: Population, owners: Ints, budget: Floats) -> Profiles:
    """(1, n) true types with the budgets that lifetime budgets leave.

    A step owner with a smaller budget has a higher rate, so that her cost of selling stays the
    same.
    """
    true_budget = people.privacy_budget[owners]
    factor = np.where(people.family[owners] == STEP, true_budget / budget, 1.0)
    rate, size = people.rate[owners] * factor, people.data_size[owners]
    return Profiles(people.family[owners][None], rate[None], budget[None], size[None])


def _combined(
    owners: Ints,
    truthful: ReportColumns,
    people: Population,
    parts: list[BehaviourPart],
    total: int,
    cast: Cast,
) -> CohortMisreports:
    """All reports in one table: those of the behaviours, and the truth of the other owners."""
    origin = np.concatenate([np.arange(len(owners)), np.zeros(total - len(owners), np.int64)])
    for part in parts:
        origin[part.slots] = part.slots[_first_rows(part.of)][part.of]
    values, budget, size, stated = truthful.at(origin)
    code = np.full(total, HONEST, np.int8)
    family = people.family[owners][origin].astype(object)
    rate = people.rate[owners][origin].astype(object)
    first_record = np.zeros(total, np.int64)
    names = owners[origin]
    true_size = size.copy()
    for part in parts:
        report, slots = part.reports, part.slots
        values[slots], budget[slots] = report.values, report.privacy_budget
        size[slots], code[slots] = report.data_size, part.behaviour
        stated = stated.replaced(slots, report.statements())
        family[slots] = None if report.family is None else np.asarray(report.family).tolist()
        rate[slots] = None if report.rate is None else report.rate.tolist()
        number, first_record[slots] = _within(part.of, report.data_size)
        names[slots] += number * len(people)
        if (names > LARGEST_NAME).any():
            name = cast.behaviours[part.behaviour].name
            raise ContractError(f"behaviour {name!r} uses more names than the log has numbers for")
        true_size[slots] = _true_sizes(part)
    columns = ReportColumns(values, budget, size, stated)
    return CohortMisreports(
        names, origin, code, columns, first_record, true_size, family, rate, parts
    )


def _first_rows(of: Ints) -> Ints:
    """(k,) the first row of each owner of a view."""
    return np.unique(of, return_index=True)[1]


def _within(of: Ints, size: Floats) -> tuple[Ints, Ints]:
    """The number of each row among its owner's rows, and the records of her earlier rows."""
    order = np.argsort(of, kind="stable")
    begin = np.searchsorted(of[order], of[order])
    number, before = np.empty_like(of), np.empty_like(of)
    number[order] = np.arange(len(of)) - begin
    records = size[order].astype(np.int64)
    so_far = np.cumsum(records) - records
    before[order] = so_far - so_far[begin]
    return number, before


def _true_sizes(part: BehaviourPart) -> Floats:
    """Records behind each row: its own. The first row of an owner also has all that she hides."""
    size = part.reports.data_size.copy()
    hidden = part.view.data_size - np.bincount(part.of, size, len(part.view.owners))
    size[_first_rows(part.of)] += hidden
    return size
