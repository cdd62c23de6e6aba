"""One market that violates a property: small enough to read, complete enough to play again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.testing.trial_markets import LEVELS, Floats, Markets, columns


@dataclass(frozen=True)
class RelativeMisreport:
    """A report relative to the truth, so that it keeps its meaning when the truth is rounded.

    factor        (M,) the reported value of each level, as a factor of its true value
    budget_share  offered share of the true privacy budget
    size_share    offered share of the true records
    """

    factor: tuple[float, ...]
    budget_share: float = 1.0
    size_share: float = 1.0


@dataclass(frozen=True)
class ViolatingMarket:
    """truth (1, n) and money of one market, and what the check changes in it.

    owner      the owner of interest
    misreport  what she reports instead of the truth
    order      the owners rearranged: position p of the other market holds owner order[p]
    beside     another market (1, n), decided in the same call
    """

    truth: Profiles
    money: float
    levels: int = LEVELS
    owner: int | None = None
    misreport: RelativeMisreport | None = None
    order: tuple[int, ...] | None = None
    beside: tuple[Profiles, float] | None = None

    @classmethod
    def of(cls, markets: Markets, k: int, **change: Any) -> ViolatingMarket:
        """Market k of several."""
        return cls(
            markets.truth.take(slice(k, k + 1)), float(markets.money[k]), markets.levels, **change
        )

    @property
    def n(self) -> int:
        return self.truth.shape[1]

    @property
    def budget(self) -> Floats:
        return np.array([self.money])

    def bids(self) -> BidBatch:
        """The truthful bids of the market."""
        return self.truth.bids(self.levels)

    def offered_size(self) -> float:
        """Records that the owner offers."""
        assert self.owner is not None and self.misreport is not None
        size = self.truth.data_size[0, self.owner]
        return float(np.clip(np.floor(self.misreport.size_share * size + 1e-9), 1.0, size))

    def misreported_bids(self) -> BidBatch:
        """The bids if the owner misreports, and all others tell the truth."""
        assert self.owner is not None and self.misreport is not None
        i, truth, bids = self.owner, self.truth, self.bids()
        values, budgets, sizes = (
            bids.values.copy(),
            bids.privacy_budget.copy(),
            bids.data_size.copy(),
        )
        budgets[0, i] *= min(self.misreport.budget_share, 1.0)
        sizes[0, i] = self.offered_size()
        honest = truth.types.at((0, i)).table(self.levels, budgets[0, i], sizes[0, i])
        values[0, i] = np.maximum.accumulate(honest * np.asarray(self.misreport.factor))
        # Counts where the whole table is this factor of the truth.
        hers = StatedValuations.of(truth.types.at((0, i)), sizes[0, i])
        hers = hers.times(np.array(self.misreport.factor[-1]))
        return BidBatch(values, budgets, sizes, bids.stated_valuations().replaced((0, i), hers))

    def without(self, j: int) -> ViolatingMarket:
        """The same market without owner j."""
        others = [i for i in range(self.n) if i != j]
        new = {i: place for place, i in enumerate(others)}
        beside = self.beside and (some(self.beside[0], others), self.beside[1])
        return replace(
            self,
            truth=some(self.truth, others),
            owner=None if self.owner is None else new[self.owner],
            order=self.order and tuple(new[i] for i in self.order if i != j),
            beside=beside,
        )


def some(truth: Profiles, owners: list[int]) -> Profiles:
    """Some of the owners, in this order."""
    return Profiles(*(column[:, owners] for column in columns(truth)))


def scaled(factor: float, levels: int) -> RelativeMisreport:
    """The whole table times a factor."""
    return RelativeMisreport((factor,) * levels)


def tied(bids: BidBatch, *parts: str) -> NDArray[np.bool_]:
    """(K,) markets in which two owners are alike in one of these parts, so that order or rounding
    decides.

    Parts are columns of the bids, "unit" (value of a unit of privacy on a record) or "record"
    (value of a record).
    """
    made = {
        "unit": bids.full_value / (bids.data_size * bids.privacy_budget),
        "record": bids.full_value / bids.data_size,
    }
    alike = np.zeros(bids.shape[0], bool)
    for part in parts:
        ranked = np.sort(made[part] if part in made else getattr(bids, part), axis=1)
        alike |= (np.diff(ranked, axis=1) <= 1e-9 * ranked[:, 1:]).any(axis=1)
    return alike
