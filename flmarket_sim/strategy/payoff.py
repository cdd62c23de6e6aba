"""What a report earns: the utility of one liar in each market, on the mechanism as deployed."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction
from flmarket_sim.auctions.play import DRAWS, Lots, Player, draws_numbers
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.statistics import standard_error
from flmarket_sim.strategy.misreports import Bools, Floats, Ints, Misreports

AT_ONCE = (
    8_192  # markets decided in one call: their intermediate results fit into a processor's cache
)


class Payoff:
    """The liars' utilities in K = G x samples markets, owner[g] lying in markets g * samples and
    following.

    `group` (K, n) names those whose utilities are summed (by default the liar's alone counts).
    """

    def __init__(
        self,
        auction: Any,
        truth: Profiles,
        reported: BidBatch,
        budget: Floats,
        owner: Ints,
        *,
        samples: int = 1,
        group: Bools | None = None,
        seed: int = 0,
        draws: int = DRAWS,
    ) -> None:
        if (
            len(owner) * samples != truth.shape[0]
            or reported.shape != truth.shape
            or budget.shape != truth.shape[:1]
        ):
            raise InputError(
                f"{len(owner)} liars with {samples} markets each need {len(owner) * samples} "
                f"markets, got {truth.shape[0]} (reports {reported.shape}, budgets {budget.shape})"
            )
        self.truth, self.reported, self.budget = truth, reported, budget
        self.owner, self.samples, self.group = owner, samples, group
        self.player = Player.of(auction, reported, budget, seed, draws)
        self._stated = reported.stated_valuations()
        self._liar = np.repeat(owner, samples)

    def __call__(self, reports: Misreports) -> Floats:
        """(C, G) mean utility of the liar, or of her group, under each candidate (C, G, ...)."""
        candidates = reports.privacy_budget.shape[0]
        markets = self.truth.shape[0]
        per_call = markets if self.player.sampled else max(1, AT_ONCE // max(candidates, 1))
        per_call = max(self.samples, per_call // self.samples * self.samples)
        utility = np.empty((candidates, markets))
        for begin in range(0, markets, per_call):
            rows = np.arange(begin, min(begin + per_call, markets))
            at_once = 1 if self.player.sampled else max(1, AT_ONCE // len(rows))
            for first in range(0, candidates, at_once):
                part = slice(first, first + at_once)
                utility[part, rows] = self._utilities(reports.at(part), rows)
        return np.asarray(utility.reshape(candidates, len(self.owner), self.samples).mean(axis=2))

    def paired(
        self, one: Misreports, other: Misreports, seed: int, draws: int
    ) -> tuple[Floats, Floats, Floats]:
        """(G,) mean utilities of two reports on the same fresh draws, and the standard error of
        their difference."""
        fresh = copy.copy(self)
        pairs = np.empty((2, draws, len(self.owner)))
        for draw in range(draws):
            fresh.player = Player(self.player.auction, self.player.random, seed + draw, draws=1)
            pairs[:, draw] = [fresh(report.at(None))[0] for report in (one, other)]
        error = standard_error(pairs[0] - pairs[1])
        return pairs[0].mean(axis=0), pairs[1].mean(axis=0), error

    def _utilities(self, reports: Misreports, rows: Ints) -> Floats:
        """(C, len(rows)) for candidates in some of the markets."""
        count = reports.privacy_budget.shape[0]
        liar, market = self._liar[rows], rows // self.samples
        place = np.arange(len(rows))

        def replaced(everybody: NDArray[Any], misreports: NDArray[Any]) -> NDArray[Any]:
            many = np.repeat(everybody[None, rows], count, axis=0)
            many[:, place, liar] = misreports[:, market]
            return many.reshape(-1, *many.shape[2:])

        bids = BidBatch(
            replaced(self.reported.values, reports.values),
            replaced(self.reported.privacy_budget, reports.privacy_budget),
            replaced(self.reported.data_size, reports.data_size),
            StatedValuations(
                replaced(self._stated.family, reports.stated.family),
                replaced(self._stated.scale, reports.stated.scale),
            ),
        )
        lots = self.player.lots(bids, np.tile(self.budget[rows], count))
        markets = np.tile(rows, count)
        if self.group is None:
            return self._mean(lots, markets, np.tile(liar, count)).reshape(count, len(rows))
        total, every = np.zeros((count, len(rows))), list(lots)
        for j in np.flatnonzero(self.group[rows].any(axis=0)):
            utility = self._mean(every, markets, np.full(len(markets), j))
            total += np.where(self.group[rows, j], utility.reshape(count, len(rows)), 0.0)
        return total

    def _mean(self, lots: Iterable[Lots], markets: Ints, column: Ints) -> Floats:
        """Mean utility over lots (B, n) of owner column[b] of market markets[b]."""
        owner = self.truth.types.at((markets, column))
        row = np.arange(len(markets)), column
        total = np.zeros(len(markets))
        for lot in lots:
            chance, loss, payment, size = (part[row] for part in lot)
            utility = owner.utility(loss, payment, size)
            total += np.where(chance > 0, chance * utility, 0.0)
        return total


def require_one_outcome(auction: Auction, bids: BidBatch, budget: Floats) -> None:
    """Refuses auctions that draw numbers."""
    if draws_numbers(auction, bids, budget):
        raise InputError(
            f"auction {auction.name!r} draws numbers: "
            "this study needs one outcome for one set of reports"
        )
