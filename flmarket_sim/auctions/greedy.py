"""Greedy admission of owners in sorted order, for K markets at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Outcome
from flmarket_sim.owners.bids import BidBatch

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Values = TypeVar("Values", Floats, Bools)
STEPS = 64  # that all markets take together, before those who need more go on alone


@dataclass(frozen=True)
class Sorted:
    """Owners in ascending order of unit valuation r = V / x (paper, appendix B).

    x is what her whole sale counts as, `amount`: d eb in the paper. All arrays are (K, n).
    `order[k, j]` is the owner at place j; ties keep the order of the bids.
    """

    order: NDArray[np.int64]
    unit_value: Floats
    amount: Floats
    value: Floats

    @classmethod
    def by_unit_value(cls, value: Floats, amount: Floats) -> Sorted:
        with np.errstate(over="ignore", divide="ignore"):  # of no amount: the owner comes last
            unit = value / amount
        order = np.argsort(unit, axis=1, kind="stable")
        pick = np.take_along_axis
        return cls(order, pick(unit, order, 1), pick(amount, order, 1), pick(value, order, 1))

    def whole_sales(self, bids: BidBatch, won: Bools, payment: Floats) -> Outcome:
        """Winners sell their whole budgets for payments by place; losers sell nothing."""
        loss = np.where(self.restore(won), bids.privacy_budget, 0.0)
        return Outcome(loss, self.restore(np.where(won, payment, 0.0)))

    def restore(self, places: Values) -> Values:
        """Values by place back to values by owner."""
        owners = np.empty_like(places)
        np.put_along_axis(owners, self.order, places, axis=1)
        return owners


def before(amount: Floats) -> Floats:
    """Sum of what stands before each place."""
    total = np.cumsum(amount, axis=1)
    total[:, 1:] = total[:, :-1]
    total[:, 0] = 0.0
    return total


def admit(amount: Floats, limit: Floats) -> Bools:
    """(K, n) place j is admitted if (sum admitted so far) + amount_j <= limit_j.

    A refusal does not end the walk. The places up to the first refusal are one cumulative sum. Sums
    only grow after it, so a place that does not fit then never will: each step admits, in every
    market at once, the first later place that still fits. Such a step looks at all places, so
    markets that need many steps are walked place by place (one huge owner is refused early, and
    thousands of small ones follow).
    """
    markets, places = amount.shape
    sums = np.cumsum(amount, axis=1)
    refused = sums > limit
    first = np.where(refused.any(axis=1), refused.argmax(axis=1), places)
    column = np.arange(places)
    admitted = column < first[:, None]
    total = np.where(first > 0, sums[np.arange(markets), first - 1], 0.0)
    behind = first
    for _ in range(STEPS):
        fits = (column > behind[:, None]) & (total[:, None] + amount <= limit)
        some = fits.any(axis=1)
        if not some.any():
            return np.asarray(admitted)
        rows = np.flatnonzero(some)
        chosen = fits[rows].argmax(axis=1)
        admitted[rows, chosen] = True
        total[rows] += amount[rows, chosen]
        behind = behind.copy()
        behind[rows] = chosen
    for row in rows.tolist():
        after = int(behind[row]) + 1
        admitted[row, after:] = _walk(amount[row, after:], limit[row, after:], float(total[row]))
    return np.asarray(admitted)


def _walk(amount: Floats, limit: Floats, total: float) -> list[bool]:
    """One market's places one after the other, with `total` admitted before them."""
    admitted = []
    for x, most in zip(amount.tolist(), limit.tolist(), strict=True):
        fits = total + x <= most
        admitted.append(fits)
        if fits:
            total += x
    return admitted
