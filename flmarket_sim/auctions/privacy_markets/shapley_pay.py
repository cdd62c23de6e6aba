"""Shapley pay: everybody sells everything, and the budget is divided by Shapley values."""

from __future__ import annotations

import copy
from math import comb
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.owners.bids import BidBatch

Bools = NDArray[np.bool_]
LOSSES = 1e-70, 1e70  # errors of coalitions are computed for losses between these
AT_ONCE = 200_000  # numbers of one array of coalitions


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
        markets, n = bids.shape
        lots = None if n <= self.exact else rng.random((markets, self.permutations, n))
        share = np.empty((markets, n))
        coalitions = 2**n if lots is None else self.permutations * n
        at_once = max(1, AT_ONCE // (coalitions * n))
        for first in range(0, markets, at_once):
            rows = slice(first, first + at_once)
            loss = np.clip(bids.privacy_budget[rows], *LOSSES)
            size = bids.data_size[rows]
            value = (
                self._exact(loss, size)
                if lots is None
                else self._sampled(loss, size, lots[rows].argsort(axis=2))
            )
            share[rows] = _shares(value)
        return Outcome(np.array(bids.privacy_budget), share * budget[:, None])

    def _exact(self, loss: Floats, size: Floats) -> Floats:
        """(K, n) sums over coalitions without i of what she adds, each with its chance."""
        n = loss.shape[1]
        numbers = np.arange(2**n)
        member = (numbers[:, None] >> np.arange(n)) & 1 == 1
        worth = self._worth(loss, size, np.broadcast_to(member, (len(loss), *member.shape)))
        others = member.sum(axis=1)
        value = np.empty(loss.shape)
        for i in range(n):
            without = numbers[~member[:, i]]
            chance = np.array([1.0 / (n * comb(n - 1, int(m))) for m in others[without]])
            value[:, i] = (worth[:, without + (1 << i)] - worth[:, without]) @ chance
        return value

    def _sampled(self, loss: Floats, size: Floats, order: NDArray[np.int64]) -> Floats:
        """(K, n) means over orders (K, P, n) of what each owner adds to those before her."""
        markets, orders, n = order.shape
        place = order.argsort(axis=2)  # of each owner
        prefix = place[:, :, None, :] <= np.arange(n)[:, None]
        worth = self._worth(loss, size, prefix.reshape(markets, orders * n, n))
        worth = worth.reshape(markets, orders, n)
        nobody = self._worst(loss, size)[:, None, None]
        before = np.concatenate([np.broadcast_to(nobody, (markets, orders, 1)), worth], axis=2)
        added = np.take_along_axis(np.diff(before, axis=2), place, axis=2)
        return np.asarray(added.mean(axis=1))

    def _worth(self, loss: Floats, size: Floats, member: Bools) -> Floats:
        """(K, S) minus the errors of S coalitions (K, S, n)."""
        markets, count, n = member.shape
        total, flat = np.empty(markets * count), member.reshape(-1, n)
        at_once = max(1, AT_ONCE // n)
        for first in range(0, len(flat), at_once):
            rows = slice(first, first + at_once)
            market = np.arange(markets * count)[rows] // count
            sold, sizes = np.where(flat[rows], loss[market], 0.0), size[market]
            weights = weights_in(OptAggr(), sold, sizes, self.error)
            total[rows] = error_bound_in(self.error, weights, sold, sizes).total
        nobody = ~member.any(axis=2)
        worst = self._worst(loss, size)[:, None] if nobody.any() else 0.0
        return np.where(nobody, worst, -total.reshape(markets, count))

    def _worst(self, loss: Floats, size: Floats) -> Floats:
        """(K,) what the worst coalition of one owner is worth."""
        markets, n = loss.shape
        alone = np.broadcast_to(np.eye(n, dtype=bool), (markets, n, n))
        return np.asarray(self._worth(loss, size, alone).min(axis=1))


def _shares(value: Floats) -> Floats:
    """(K, n) what each owner gets of the money: her positive value, or alike if there is none."""
    positive = np.maximum(value, 0.0)
    _, size = np.frexp(positive.max(axis=1))
    positive = np.ldexp(positive, -size[:, None])
    total = positive.sum(axis=1, keepdims=True)
    some = total > 0
    return np.asarray(np.where(some, positive / np.where(some, total, 1.0), 1.0 / value.shape[1]))
