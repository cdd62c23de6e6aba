"""Owners who do not simply tell the truth: who they are, and what a round's cohort reports because of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction
from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.market.messages import ReportColumns
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.population import Population
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.strategy.behaviours.behaviour import (
    Behaviour,
    BehaviourReports,
    CohortView,
    check_told,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
HONEST = -1  # in the place of a behaviour
LARGEST_NAME = 2**31 - 1  # participants are 32-bit numbers in the log


def behaviour_labels(scenario: Scenario) -> tuple[str, ...]:
    """What the log calls the behaviours of a scenario: their names, numbered where one appears twice."""
    labels: list[str] = []
    for spec in scenario.owners.behaviours:
        name = str(registry.behaviours.get(spec.name).name)
        before = sum(label == name or label.startswith(f"{name}-") for label in labels)
        labels.append(f"{name}-{before + 1}" if name in labels else name)
    return tuple(labels)


class Cast:
    """Who behaves how. `code` (N,) is a position in the scenario's list of behaviours, HONEST for the rest.

    The owners of a behaviour are the first in an order of its own, drawn by its place in the list: a larger share has
    those of a smaller one among its owners, and another behaviour in the same place has the same owners.
    """

    def __init__(self, scenario: Scenario, streams: Streams) -> None:
        specs, count = scenario.owners.behaviours, scenario.owners.count
        self.streams, self.labels = streams, behaviour_labels(scenario)
        self.behaviours: list[Behaviour] = [
            registry.behaviours.create(s.name, **s.options) for s in specs
        ]
        self.begins = np.array([spec.from_round for spec in specs])
        self.code: Codes = np.full(count, HONEST, np.int8)
        for place, spec in enumerate(specs):
            order = streams.generator(Purpose.BEHAVIOUR, place).permutation(count)
            free = order[self.code[order] == HONEST]
            self.code[free[: int(np.floor(spec.share * count + 0.5))]] = place

    def acting(self, owners: Ints, round_number: int) -> Codes:
        """(n,) by which behaviour each owner bids in a round."""
        code = self.code[owners]
        return np.where(self.begins[code] <= round_number, code, HONEST).astype(np.int8)


class Spoken(NamedTuple):
    """What one behaviour said in a round: its report in row r is that of slot slots[r], for owner of[r] of the view."""

    place: int
    view: CohortView
    told: BehaviourReports
    slots: Ints
    of: Ints


@dataclass(frozen=True)
class CohortMisreports:
    """What a cohort reports when not all of it tells the truth. Columns over the n asked owners, then their further names.

    names         (s,) participants' numbers: a further name j of owner i is i + j N
    origin        (s,) the slot of the person
    code          (s,) behaviour, HONEST for those who simply tell the truth
    first_record  (s,) where among her records those of this name begin
    true_size     (s,) records that are truly behind a report
    """

    names: Ints
    origin: Ints
    code: Codes
    reports: ReportColumns
    first_record: Ints
    true_size: Floats
    family: Any
    rate: Any
    spoken: list[Spoken]

    @property
    def several_names(self) -> bool:
        return len(self.names) > len(np.unique(self.origin))

    def spelled_out(self) -> Any:
        """(s,) the values of those with a behaviour, for the log; None for the others."""
        column = np.full(len(self.names), None, dtype=object)
        for slot in np.flatnonzero(self.code != HONEST).tolist():
            column[slot] = self.reports.values[slot].tolist()
        return column


def step_shares(family: Codes, person: Ints, size: Floats, privacy_loss: Floats) -> Floats:
    """The part of a step owner's cost that falls on each of her names that sell: by records; 1 for everybody else.

    Selling anything costs her the same whatever else she sells.
    """
    _, group = np.unique(person, return_inverse=True)
    selling = np.where(privacy_loss > 0, size, 0.0)
    total = np.bincount(group, selling)[group]
    return np.where(
        (family == valuation.STEP) & (selling > 0), size / np.maximum(total, 1e-300), 1.0
    )


def tell(
    cast: Cast, people: Population, key: tuple[int, int], owners: Ints, truthful: ReportColumns, there: NDArray[np.bool_],
    able: NDArray[np.bool_], auction: Auction, money: float,
) -> CohortMisreports | None:  # fmt: skip
    """Asks the behaviours of the asked owners for their reports; None if nobody has one.

    `key` is (buyer, round); `there` (n,) says who will bid, `able` (n,) who has privacy left to sell.
    """
    acting = cast.acting(owners, key[1])
    lying = (acting != HONEST) & there & able
    if not lying.any():
        return None
    column = np.cumsum(able) - 1
    asked = _types(people, owners[able], truthful.privacy_budget[able])
    bids = BidBatch(
        truthful.values[None, able],
        truthful.privacy_budget[None, able],
        truthful.data_size[None, able],
    )
    spoken: list[Spoken] = []
    slots_used = len(owners)
    for place in np.unique(acting[lying]).tolist():
        mine = np.flatnonzero(lying & (acting == place))
        rng = cast.streams.generator(Purpose.REPORT, place, *key)
        view = CohortView(
            key[1], key[0], owners[mine], column[mine], money, auction, rng, asked, bids, people
        )
        behaviour = cast.behaviours[place]
        with plugin_errors("behaviour", behaviour.name):
            told = check_told(behaviour.name, behaviour.report(view), view)
        of = np.asarray(told.of)
        slots, further = np.empty(len(of), np.int64), np.ones(len(of), np.bool_)
        further[_first_rows(of)] = False
        slots[_first_rows(of)] = mine
        slots[further] = slots_used + np.arange(len(of) - len(mine))
        slots_used += len(of) - len(mine)
        spoken.append(Spoken(place, view, told, slots, of))
    return _combined(owners, truthful, people, spoken, slots_used, cast)


def _types(people: Population, owners: Ints, budget: Floats) -> Profiles:
    """(1, n) true types with budgets as lifetimes leave them; what a step owner loses by selling stays the same."""
    true = people.privacy_budget[owners]
    rate = people.rate[owners] * np.where(
        people.family[owners] == valuation.STEP, true / budget, 1.0
    )
    return Profiles(
        people.family[owners][None], rate[None], budget[None], people.data_size[owners][None]
    )


def _combined(
    owners: Ints,
    truthful: ReportColumns,
    people: Population,
    spoken: list[Spoken],
    total: int,
    cast: Cast,
) -> CohortMisreports:
    """All reports in one table, the truth where nobody said otherwise."""
    origin = np.concatenate([np.arange(len(owners)), np.zeros(total - len(owners), np.int64)])
    for one in spoken:
        origin[one.slots] = one.slots[_first_rows(one.of)][one.of]
    values, budget, size = (part[origin] for part in truthful)
    code = np.full(total, HONEST, np.int8)
    family = people.family[owners][origin].astype(object)
    rate = people.rate[owners][origin].astype(object)
    first_record = np.zeros(total, np.int64)
    names = owners[origin]
    true_size = size.copy()
    for one in spoken:
        told, slots = one.told, one.slots
        values[slots], budget[slots], size[slots] = told.values, told.privacy_budget, told.data_size
        code[slots] = one.place
        family[slots] = None if told.family is None else np.asarray(told.family).tolist()
        rate[slots] = None if told.rate is None else told.rate.tolist()
        number, before = _within(one.of, told.data_size)
        first_record[slots] = before
        names[slots] += number * len(people)
        if (names > LARGEST_NAME).any():
            raise ContractError(
                f"behaviour {cast.behaviours[one.place].name!r} uses more names than the log has numbers for"
            )
        true_size[slots] = _true_sizes(one)
    return CohortMisreports(
        names,
        origin,
        code,
        ReportColumns(values, budget, size),
        first_record,
        true_size,
        family,
        rate,
        spoken,
    )


def _first_rows(of: Ints) -> Ints:
    """(k,) the first row of each owner of a view."""
    return np.unique(of, return_index=True)[1]


def _within(of: Ints, size: Floats) -> tuple[Ints, Ints]:
    """Which row of its owner each row is, from 0, and how many records her earlier rows have."""
    order = np.argsort(of, kind="stable")
    begin = np.searchsorted(of[order], of[order])
    number, before = np.empty_like(of), np.empty_like(of)
    number[order] = np.arange(len(of)) - begin
    records = size[order].astype(np.int64)
    so_far = np.cumsum(records) - records
    before[order] = so_far - so_far[begin]
    return number, before


def _true_sizes(one: Spoken) -> Floats:
    """Records behind each row: its own, and with the first row all that its owner does not offer."""
    size = one.told.data_size.copy()
    hidden = one.view.data_size - np.bincount(one.of, size, len(one.view.owners))
    size[_first_rows(one.of)] += hidden
    return size
