"""Reports of one liar in each row, and the liars themselves: what the search moves and what it may not exceed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import BidBatch, Profiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LEAST_SHARE = 1e-3  # of a true privacy budget: nobody gains by selling less than this


@dataclass(frozen=True)
class Misreports:
    """Reports of G liars, or C candidates for each of them: values (..., G, M), privacy_budget and data_size (..., G)."""

    values: Floats
    privacy_budget: Floats
    data_size: Floats

    def at(self, index: Any) -> Misreports:
        """Some of them: any index of the leading axes."""
        return Misreports(self.values[index], self.privacy_budget[index], self.data_size[index])

    def where(self, mask: Bools, other: Misreports) -> Misreports:
        """These where `mask`, else the other's."""
        return Misreports(
            np.where(mask[..., None], self.values, other.values),
            np.where(mask, self.privacy_budget, other.privacy_budget),
            np.where(mask, self.data_size, other.data_size),
        )

    @classmethod
    def stack(cls, parts: list[Misreports]) -> Misreports:
        """Candidates one after the other: each part (C, G, ...)."""
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.privacy_budget for part in parts]),
            np.concatenate([part.data_size for part in parts]),
        )


@dataclass(frozen=True)
class Liars:
    """True types (G,) of the owners who look for a lie, and what they see of their markets.

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
        """Owner owner[g] of market g; with samples, of the markets g * samples and following. Certified sizes cannot be false."""
        rows = np.arange(len(owner)) * samples
        unit = reported.full_value[rows] / (
            reported.data_size[rows] * reported.privacy_budget[rows]
        )
        others = np.arange(truth.shape[1]) != owner[:, None]
        rivals = unit[others].reshape(len(owner), truth.shape[1] - 1)
        columns = (truth.family, truth.rate, truth.privacy_budget, truth.data_size)
        family, rate, eb, size = (np.asarray(column)[rows, owner] for column in columns)
        money = budget.reshape(len(owner), samples).mean(axis=1)
        return cls(family, rate, eb, size, money, rivals, reported.levels, size_certified)

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def step_cost(self) -> Floats:
        return np.asarray(self.rate * self.data_size * self.privacy_budget)

    def table(
        self, family: NDArray[np.int8], rate: Floats, privacy_budget: Floats, data_size: Floats
    ) -> Misreports:
        """The report of an owner of such a type; arrays broadcast to (..., G)."""
        family, rate, budget, size = np.broadcast_arrays(family, rate, privacy_budget, data_size)
        loss = budget[..., None] * (np.arange(1, self.levels + 1) / self.levels)
        wide: list[Any] = [
            column[..., None] for column in (family, rate, size, rate * size * budget)
        ]
        return Misreports(
            valuation.value(wide[0], wide[1], wide[2], loss, wide[3]), budget.copy(), size.copy()
        )

    def truth(self) -> Misreports:
        return self.honest(self.privacy_budget, self.data_size)

    def honest(self, privacy_budget: Floats, data_size: Floats) -> Misreports:
        """True values of what such a budget and so many records can sell: only budget and size may be false."""
        loss = privacy_budget[..., None] * (np.arange(1, self.levels + 1) / self.levels)
        wide: list[Any] = [
            column[..., None] for column in (self.family, self.rate, data_size, self.step_cost)
        ]
        return Misreports(
            valuation.value(wide[0], wide[1], wide[2], loss, wide[3]), privacy_budget, data_size
        )

    def feasible(self, lies: Misreports) -> Misreports:
        """Nothing above what she has, at least one record, values that rise."""
        budget = np.clip(
            lies.privacy_budget, LEAST_SHARE * self.privacy_budget, self.privacy_budget
        )
        least = self.data_size if self.size_certified else 1.0
        size = np.clip(np.floor(lies.data_size), least, self.data_size)
        values = np.maximum.accumulate(
            np.clip(lies.values, 0.0, 1e9 * (1.0 + self.money[:, None])), axis=-1
        )
        return Misreports(values, budget, size)

    def value(self, privacy_loss: Floats, data_size: Floats) -> Floats:
        """(..., G) true value of losses on so many records."""
        return valuation.value(self.family, self.rate, data_size, privacy_loss, self.step_cost)


def false_parts(liars: Liars, lies: Misreports) -> tuple[Bools, Bools, Bools]:
    """Which part of each report (G,) is false: the values (of what is offered), the privacy budget, the data size."""
    honest = liars.honest(lies.privacy_budget, lies.data_size)
    scale = np.maximum(honest.values[..., -1:], 1e-300)
    values = (np.abs(lies.values - honest.values) > 1e-9 * scale).any(axis=-1)
    return (
        np.asarray(values),
        lies.privacy_budget < liars.privacy_budget * (1 - 1e-9),
        lies.data_size < liars.data_size,
    )
