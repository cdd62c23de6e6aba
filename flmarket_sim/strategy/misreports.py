"""Misreports of owners, and the owners themselves: what the search varies, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.stated_valuation import StatedValuations

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LEAST_SHARE = 1e-3  # of a true privacy budget: nobody gains by a smaller sale


@dataclass(frozen=True)
class Misreports:
    """Reports of G liars, or C candidates for each of them: values (..., G, M), privacy_budget and
    data_size (..., G).

    `given` (..., G) are the valuations that the reports state, as in a BidBatch; None if their
    tables are all they state.
    """

    values: Floats
    privacy_budget: Floats
    data_size: Floats
    given: StatedValuations | None = None

    @property
    def stated(self) -> StatedValuations:
        """What the reports state; `TABLE` where they state no more than their tables."""
        if self.given is None:
            return StatedValuations.tables(self.privacy_budget.shape)
        return self.given

    def at(self, index: Any) -> Misreports:
        """Some of them: any index of the leading axes."""
        return Misreports(
            self.values[index],
            self.privacy_budget[index],
            self.data_size[index],
            None if self.given is None else self.given.at(index),
        )

    def where(self, mask: Bools, other: Misreports) -> Misreports:
        """These reports where `mask`, the others elsewhere."""
        return Misreports(
            np.where(mask[..., None], self.values, other.values),
            np.where(mask, self.privacy_budget, other.privacy_budget),
            np.where(mask, self.data_size, other.data_size),
            self.stated.where(mask, other.stated),
        )

    @classmethod
    def of(cls, bids: BidBatch, owner: Ints) -> Misreports:
        """The report of owner[k] in market k."""
        at = np.arange(len(owner)), owner
        stated = bids.stated_valuations().at(at)
        return cls(bids.values[at], bids.privacy_budget[at], bids.data_size[at], stated)

    def within(self, bids: BidBatch, owner: Ints, rows: Ints | None = None) -> BidBatch:
        """The bids, with these reports of owner[g] in market rows[g] (by default market g)."""
        at = np.arange(len(owner)) if rows is None else rows, owner
        values, budget, size = bids.values.copy(), bids.privacy_budget.copy(), bids.data_size.copy()
        values[at], budget[at], size[at] = self.values, self.privacy_budget, self.data_size
        return BidBatch(values, budget, size, bids.stated_valuations().replaced(at, self.stated))

    @classmethod
    def stack(cls, parts: list[Misreports]) -> Misreports:
        """All candidates of several parts (C, G, ...)."""
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.privacy_budget for part in parts]),
            np.concatenate([part.data_size for part in parts]),
            StatedValuations.stack([part.stated for part in parts]),
        )


@dataclass(frozen=True)
class Liars:
    """True types (G,) of the owners who misreport, and what they know of their markets.

    money   (G,) the buyer's budget
    rivals  (G, n - 1) unit valuations V / (d eb) that the others report
    """

    family: NDArray[np.int8]
    rate: Floats
    privacy_budget: Floats
    data_size: Floats
    money: Floats
    rivals: Floats
    levels: int
    size_certified: bool = False

    @classmethod
    def of(
        cls,
        truth: Profiles,
        reported: BidBatch,
        budget: Floats,
        owner: Ints,
        samples: int = 1,
        size_certified: bool = False,
    ) -> Liars:
        """Owner owner[g] of market g; with samples, of markets g * samples and following. Owners
        cannot misreport certified sizes."""
        rows = np.arange(len(owner)) * samples
        unit = reported.full_value[rows] / (
            reported.data_size[rows] * reported.privacy_budget[rows]
        )
        others = np.arange(truth.shape[1]) != owner[:, None]
        rivals = unit[others].reshape(len(owner), truth.shape[1] - 1)
        money = budget.reshape(len(owner), samples).mean(axis=1)
        types = truth.types.at((rows, owner))
        return cls(*types, money, rivals, reported.levels, size_certified)

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def types(self) -> OwnerTypes:
        return OwnerTypes(self.family, self.rate, self.privacy_budget, self.data_size)

    def table(
        self, family: NDArray[np.int8], rate: Floats, privacy_budget: Floats, data_size: Floats
    ) -> Misreports:
        """The truthful reports of owners of such types; arrays broadcast to (..., G)."""
        family, rate, budget, size = np.broadcast_arrays(family, rate, privacy_budget, data_size)
        types = OwnerTypes(family, rate, budget, size)
        stated = StatedValuations.of(types)
        return Misreports(types.table(self.levels), budget.copy(), size.copy(), stated)

    def truth(self) -> Misreports:
        return self.honest(self.privacy_budget, self.data_size)

    def honest(self, privacy_budget: Floats, data_size: Floats) -> Misreports:
        """True values of smaller budgets and fewer records: only budget and size may be false."""
        values = self.types.table(self.levels, privacy_budget, data_size)
        stated = StatedValuations.of(self.types, np.broadcast_to(data_size, privacy_budget.shape))
        return Misreports(values, privacy_budget, data_size, stated)

    def feasible(self, reports: Misreports) -> Misreports:
        """The nearest reports that owners can make: budgets and sizes of at most the true ones, at
        least one record, and values that do not fall."""
        budget = np.clip(
            reports.privacy_budget, LEAST_SHARE * self.privacy_budget, self.privacy_budget
        )
        least = self.data_size if self.size_certified else 1.0
        size = np.clip(np.floor(reports.data_size), least, self.data_size)
        values = np.maximum.accumulate(
            np.clip(reports.values, 0.0, 1e9 * (1.0 + self.money[:, None])), axis=-1
        )
        return Misreports(values, budget, size, reports.given)


def false_parts(liars: Liars, reports: Misreports) -> tuple[Bools, Bools, Bools]:
    """Which part of each report (G,) is false: the values (of what is offered), the budget, the
    size."""
    honest = liars.honest(reports.privacy_budget, reports.data_size)
    scale = np.maximum(honest.values[..., -1:], 1e-300)
    values = (np.abs(reports.values - honest.values) > 1e-9 * scale).any(axis=-1)
    return (
        np.asarray(values),
        reports.privacy_budget < liars.privacy_budget * (1 - 1e-9),
        reports.data_size < liars.data_size,
    )
