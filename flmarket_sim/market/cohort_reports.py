"""What the owners of a cohort report: the truth within their lifetime budgets, or a misreport."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction
from flmarket_sim.eventlog.record import with_nulls
from flmarket_sim.eventlog.schema import BidRecord, DropoutReason
from flmarket_sim.market.behaviour_cast import HONEST
from flmarket_sim.market.cohort_misreports import CohortMisreports, misreport
from flmarket_sim.market.messages import ReportColumns
from flmarket_sim.market.owner_draws import OwnerDraws
from flmarket_sim.market.sale_value import size_shares
from flmarket_sim.market.world import World
from flmarket_sim.owners.family_table import FAMILIES, STEP
from flmarket_sim.owners.stated_valuation import StatedValuations

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.int8]
PRESENT = -1  # in place of a DropoutReason
SOLD_OUT = 1e-9  # of a privacy budget: an owner with less left has nothing to sell
SMALLEST_BUDGET = 1e-12


@dataclass(frozen=True)
class CohortReports:
    """The reports of a cohort and who sends none; each (s,) over the participants.

    participants  numbers of the bidders: the asked owners, then their further names
    people        the owner behind each participant
    absence       a DropoutReason, or PRESENT
    columns       what each participant bids
    record        the same for the log
    """

    participants: Ints
    people: Ints
    absence: Codes
    columns: ReportColumns
    record: BidRecord
    misreports: CohortMisreports | None


def make_reports(
    world: World,
    key: tuple[int, int],
    owners: Ints,
    draws: OwnerDraws,
    auction: Auction,
    money: float,
) -> CohortReports:
    """The reports of the asked owners in the round `key` = (buyer, round)."""
    absence, truth, spelled_out = _truthful_reports(world, owners, draws)
    misreports = None
    if world.cast is not None:
        able = truth.privacy_budget > SOLD_OUT * world.population.privacy_budget[owners]
        present = absence == PRESENT
        misreports = misreport(world, key, owners, truth, present, able, auction, money)
    if misreports is not None:
        return _with_misreports(world, owners, absence, truth, spelled_out, misreports)
    people = world.population
    record = BidRecord(
        family=world.logged_families(people.family[owners]),
        rate=people.rate[owners],
        privacy_budget=truth.privacy_budget,
        data_size=people.data_size[owners],
        value=truth.values[:, -1],
        values=spelled_out,
        behaviour=None,
        person=None,
        true_privacy_budget=None,
        true_data_size=None,
        true_value=None,
    )
    return CohortReports(owners, owners, absence, truth, record, None)


def _truthful_reports(
    world: World, owners: Ints, draws: OwnerDraws
) -> tuple[Codes, ReportColumns, NDArray[np.object_] | None]:
    """Absence, the truth within lifetime budgets, and values that family and rate do not imply."""
    people = world.population
    absence = np.where(draws.away, DropoutReason.AWAY, PRESENT).astype(np.int8)
    budget, values = people.privacy_budget[owners], world.truthful_values[owners]
    foreign = people.family[owners] >= len(FAMILIES)  # a log is read without its plug-ins
    to_spell, limited = foreign, world.ledger.limited
    if limited:
        left = world.ledger.remaining(owners)
        sold_out, capped, budget = within_lifetime(budget, left)
        absence[sold_out & (absence == PRESENT)] = DropoutReason.LIFETIME_BUDGET
        levels = np.arange(1, values.shape[1] + 1) / values.shape[1]
        values = people.value(owners[:, None], budget[:, None] * levels)
        # the value of a capped step owner is that of her whole budget
        to_spell = foreign | (capped & (people.family[owners] == STEP))
    spelled_out = _as_lists(values, to_spell) if limited or foreign.any() else None
    stated = StatedValuations.of(people.types(owners))
    columns = ReportColumns(values, budget, people.data_size[owners].astype(float), stated)
    return absence, columns, spelled_out


def within_lifetime(budget: Floats, left: Floats) -> tuple[Mask, Mask, Floats]:
    """What owners with these privacy budgets may sell in one sale, where `left` remains for life.

    Returns who has nothing left to sell, whose budget is smaller for it, and the budgets.
    """
    capped = left < budget
    return (
        left <= SOLD_OUT * budget,
        capped,
        np.where(capped, np.maximum(left, SMALLEST_BUDGET), budget),
    )


def _with_misreports(
    world: World,
    owners: Ints,
    absence: Codes,
    truth: ReportColumns,
    spelled_out: NDArray[np.object_] | None,
    misreports: CohortMisreports,
) -> CohortReports:
    """Misreports in place of the truth. The names of a person share her absence."""
    origin, columns = misreports.origin, misreports.reports
    people, lying = owners[origin], misreports.code != HONEST
    values = _as_lists(columns.values, lying)
    if spelled_out is not None:
        values = np.where(lying, values, spelled_out[origin])
    true_value = truth.values[origin, -1] * size_shares(
        world.population, people, misreports.true_size, truth.data_size[origin]
    )
    record = BidRecord(
        family=world.logged_families(misreports.family),
        rate=misreports.rate,
        privacy_budget=columns.privacy_budget,
        data_size=columns.data_size.astype(np.int64),
        value=columns.values[:, -1],
        values=values,
        behaviour=_or_null(misreports.code, lying),
        person=_or_null(people, people != misreports.names),
        true_privacy_budget=_or_null(truth.privacy_budget[origin], lying),
        true_data_size=_or_null(misreports.true_size.astype(np.int64), lying),
        true_value=_or_null(true_value, lying),
    )
    return CohortReports(misreports.names, people, absence[origin], columns, record, misreports)


def _as_lists(values: NDArray[Any], chosen: NDArray[np.bool_]) -> NDArray[np.object_]:
    """(n,) the chosen rows of `values` (n, M) as lists; None in the other places."""
    column = np.full(len(values), None, dtype=object)
    for slot in np.flatnonzero(chosen).tolist():
        column[slot] = values[slot].tolist()
    return column


def _or_null(column: NDArray[Any], filled: NDArray[np.bool_]) -> NDArray[np.object_] | None:
    """A column of the log with nulls where the value is not `filled`."""
    if not filled.any():
        return None
    return with_nulls(column, ~filled)
