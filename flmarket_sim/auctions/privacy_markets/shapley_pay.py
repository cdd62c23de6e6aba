"""Shapley pay: everybody sells everything, and the budget is divided by Shapley values."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.contribution.coalition_worth import AT_ONCE, coalition_worth, worst_alone
from flmarket_sim.contribution.money_shares import positive_shares
from flmarket_sim.contribution.shapley_values import (
    added_in_order,
    all_coalitions,
    exact_values,
    prefixes,
)
from flmarket_sim.owners.bids import BidBatch

LOSSES = 1e-70, 1e70  # errors of coalitions are computed for losses between these


class ShapleyPay:
    """Every owner sells her whole privacy budget and is paid B phi_i+ / sum of phi+.

    phi is the Shapley value (Shapley, "A Value for n-Person Games", 1953) of the game in which a
    coalition is worth minus the error bound of its purchase under exact OptAggr; data shares count
    all owners. Jia et al., "Towards Efficient Data Valuation Based on the Shapley Value" (AISTATS
    2019) and Song, Tong and Wei, "Profit Allocation for Federated Learning" (IEEE Big Data 2019)
    divide money in this way. Nobody's error is infinite, so the empty coalition counts as the worst
    coalition of one owner. More sellers never add error, so no value is negative but for rounding;
    if all values are zero, owners share alike.

    Values are exact in markets of up to `exact` owners, and means over `permutations` random orders
    in larger ones. Asks do not matter, so owners may be underpaid, and reports of privacy budgets
    and records pay. The sources claim the axioms of Shapley only.
    """

    name = "shapley-pay"
    formula = "sell eb_i; pay B phi_i+ / sum of phi+, phi the Shapley values of - ERR"
    reference = (
        "Shapley (1953); Song, Tong and Wei, Profit Allocation for Federated Learning (2019)"
    )
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(
        self,
        exact: Annotated[int, Field(ge=1, le=14)] = 10,
        permutations: Annotated[int, Field(ge=1, le=100_000)] = 32,
    ) -> None:
        self.exact, self.permutations = exact, permutations
        self.error = coordinate_error()

    def in_market(self, error: MarketError) -> Self:
        """The same auction in a market that counts this error."""
        other = copy.copy(self)
        other.error = error
        return other

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        if bids.shape[1] <= self.exact:
            share = self._exact_shares(bids)
        else:
            share = self._sampled_shares(bids, rng)
        return Outcome(np.array(bids.privacy_budget), share * budget[:, None])

    def _exact_shares(self, bids: BidBatch) -> Floats:
        """(K, n) shares of the budget. Markets with the same offers are computed once."""
        offers = np.concatenate([bids.privacy_budget, bids.data_size], axis=1)
        different, market = np.unique(offers, axis=0, return_inverse=True)
        loss, size = np.hsplit(different, 2)
        share = np.empty_like(loss)
        for rows in self._pieces(len(loss), loss.shape[1], 2 ** loss.shape[1]):
            share[rows] = positive_shares(self._exact(np.clip(loss[rows], *LOSSES), size[rows]))
        return share[market.reshape(-1)]

    def _sampled_shares(self, bids: BidBatch, rng: np.random.Generator) -> Floats:
        """(K, n) shares of the budget by random orders."""
        markets, n = bids.shape
        lots, share = rng.random((markets, self.permutations, n)), np.empty((markets, n))
        for rows in self._pieces(markets, n, self.permutations * n):
            loss, order = np.clip(bids.privacy_budget[rows], *LOSSES), lots[rows].argsort(axis=2)
            share[rows] = positive_shares(self._sampled(loss, bids.data_size[rows], order))
        return share

    @staticmethod
    def _pieces(markets: int, owners: int, coalitions: int) -> Iterator[slice]:
        """Markets whose coalitions fit into memory together."""
        at_once = max(1, AT_ONCE // (coalitions * owners))
        return (slice(first, first + at_once) for first in range(0, markets, at_once))

    def _exact(self, loss: Floats, size: Floats) -> Floats:
        """(K, n) the values of markets with few owners."""
        member = all_coalitions(loss.shape[1])
        every = np.broadcast_to(member, (len(loss), *member.shape))
        return exact_values(coalition_worth(OptAggr(), self.error, loss, size, every), member)

    def _sampled(self, loss: Floats, size: Floats, order: NDArray[np.int64]) -> Floats:
        """(K, n) means over orders (K, P, n) of what each owner adds to those before her."""
        worth = coalition_worth(OptAggr(), self.error, loss, size, prefixes(order))
        nobody = worst_alone(OptAggr(), self.error, loss, size)
        return np.asarray(added_in_order(worth, nobody, order).mean(axis=1))
