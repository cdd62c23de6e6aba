"""The favourite point of an owner on a menu of privacy losses, computed exactly from her report.

A menu has a public grid of losses, which no report can change, and a payment for each. Losses below
a sixteenth of the largest are not for sale: they would be next to worthless (docs/seq-price.md,
"The grid"). A report stands for a valuation v: the one that it states
(owners/stated_valuation.py), or else its table, rounded up: a loss between two levels costs as much
as the upper one. The favourite maximises payment - v over the losses of the grid within the
reported privacy budget; "nothing" is a choice too. So after a true report it is the owner's best
choice, whatever her valuation is.

Payments are straight between knots. So an owner whose valuation is linear, a square root or a step
has her favourite at a knot or at the end of her budget, and one whose valuation is quadratic or
exponential may also have it next to the loss at which both slopes agree. For these families only
such points are tried, for all others the whole grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Floats
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.family_table import EXPONENTIAL, QUADRATIC, STEP, present
from flmarket_sim.owners.stated_valuation import TABLE, StatedValuations
from flmarket_sim.owners.valuation import in_proportion_to_size, size_factor, unit_value

PARTS = 16  # of the grid between two knots of a price curve (docs/seq-price.md, "The grid")
LEAST = 1 / 16  # of the largest loss on a menu: smaller ones are not for sale
LEAST_NUMBER = float(np.finfo(float).smallest_subnormal)
NOT_ALLOWED = -1.0  # a utility that "nothing" beats
ON_A_LEVEL = 1e-12  # of a privacy budget: a loss this little above a level is on it
Ints = NDArray[np.int64]


def fine_grid(knots: Floats) -> Floats:
    """(L * PARTS,) the losses that divide each piece between knots (L,) into equal parts."""
    left = np.concatenate([[0.0], knots[:-1]])
    share = np.arange(1, PARTS + 1) / PARTS
    grid = left[:, None] + (knots - left)[:, None] * share
    grid[:, -1] = knots
    return np.asarray(grid.ravel())


def first_for_sale(grid: Floats) -> int:
    """The place of the smallest loss for sale on a grid."""
    return int(np.searchsorted(grid, LEAST * grid[-1] * (1.0 - ON_A_LEVEL)))


def payments_between(price: Floats) -> Floats:
    """(K, L * PARTS) payments on the fine grid, straight between prices (K, L) at knots from 0 at 0
    on. None is above the price at the end of its piece."""
    below = np.pad(price[:, :-1], ((0, 0), (1, 0)))
    missing = 1.0 - np.arange(1, PARTS + 1) / PARTS
    payment = price[:, :, None] - (price - below)[:, :, None] * missing
    return payment.reshape(len(price), -1)


@dataclass(frozen=True)
class Reading:
    """Reports as the valuations that they are read as."""

    stated: StatedValuations
    bids: BidBatch

    @classmethod
    def of(cls, bids: BidBatch) -> Reading:
        stated = bids.stated_valuations()
        if bids.stated is not None:
            stated = stated.where_they_agree(bids.values, bids.privacy_budget)
        return cls(stated, bids)

    def of_owner(self, rows: Ints, column: Ints) -> Claim:
        """Owner column[b] of market rows[b], for every b."""
        at, bids = (rows, column), self.bids
        return Claim(
            self.stated.at(at), bids.privacy_budget[at], bids.values[at], bids.data_size[at]
        )


@dataclass(frozen=True)
class Claim:
    """One report in each of K markets: what it states, privacy_budget (K,), values (K, M) and
    data_size (K,)."""

    stated: StatedValuations
    privacy_budget: Floats
    values: Floats
    data_size: Floats

    def take(self, rows: Ints) -> Claim:
        return Claim(
            self.stated.at(rows), self.privacy_budget[rows], self.values[rows], self.data_size[rows]
        )

    def values_at(self, grid: Floats) -> Floats:
        """(K, G) what it says the losses of the grid (G,) cost; beyond the budget as it comes, and
        infinite where that is more than any number."""
        family = self.stated.family
        known = np.where(family == TABLE, STEP, family)
        codes = present(known)
        unit = np.stack([unit_value(np.array(code, np.int8), grid) for code in codes])
        cost = np.asarray(unit[np.searchsorted(codes, known)])
        with np.errstate(over="ignore"):
            cost *= self.stated.scale[:, None]
        tables = np.flatnonzero(family == TABLE)
        if len(tables):
            levels = self.values.shape[1]
            place = np.ceil(grid / self.privacy_budget[tables, None] * levels - ON_A_LEVEL)
            level = np.clip(place.astype(np.int64) - 1, 0, levels - 1)
            cost[tables] = np.take_along_axis(self.values[tables], level, 1)
        return cost

    def best_of(
        self, grid: Floats, payment: Floats, cost: Floats
    ) -> tuple[Ints, NDArray[np.bool_]]:
        """(K,) the place of the best loss of the grid within the budget, and whether it is better
        than nothing. Of equally good losses it is the largest. `cost` is used up."""
        utility = np.subtract(payment, cost, out=cost)
        allowed = np.searchsorted(grid, self.privacy_budget, side="right")
        utility[np.arange(len(grid)) >= allowed[:, None]] = NOT_ALLOWED
        best = len(grid) - 1 - utility[:, ::-1].argmax(axis=1)
        return best, utility[np.arange(len(best)), best] >= 0


def favourite(claim: Claim, grid: Floats, payment: Floats) -> tuple[Floats, Floats]:
    """(K,) privacy loss and payment of the favourite among payments (K, G) for losses (G,)."""
    best, sells = claim.best_of(grid, payment, claim.values_at(grid))
    paid = payment[np.arange(len(best)), best]
    return np.where(sells, grid[best], 0.0), np.where(sells, paid, 0.0)


def favourite_on_curve(claim: Claim, knots: Floats, price: Floats) -> tuple[Floats, Floats]:
    """(K,) privacy loss and payment of the favourite on price curves (K, L) over knots (L,).

    It is the favourite among the losses of `fine_grid(knots)` that are for sale.
    """
    grid = fine_grid(knots)
    first = first_for_sale(grid)
    loss, paid = np.zeros(len(price)), np.zeros(len(price))
    family = claim.stated.family
    known = (family != TABLE) & (family <= STEP)
    bent = (family == QUADRATIC) | (family == EXPONENTIAL)
    if len(rows := np.flatnonzero(~known)):
        payment = payments_between(price[rows])[:, first:]
        loss[rows], paid[rows] = favourite(claim.take(rows), grid[first:], payment)
    for rows, inside in ((np.flatnonzero(known & ~bent), False), (np.flatnonzero(bent), True)):
        if len(rows):
            loss[rows], paid[rows] = _best_of_few(
                claim.take(rows), grid, first, price[rows], inside
            )
    return loss, paid


def _best_of_few(
    claim: Claim, grid: Floats, first: int, price: Floats, inside: bool
) -> tuple[Floats, Floats]:
    """The favourites of owners of built-in families, among few places of the grid.

    These are the first loss for sale, the end of the owner's budget, and either the knots or, with
    `inside`, the two losses of every piece next to where valuation and payments have one slope.
    """
    rows, pieces = np.arange(len(price)), price.shape[1]
    rise = price.copy()
    rise[:, 1:] -= price[:, :-1]
    ends = np.arange(1, pieces + 1) * PARTS - 1
    last = np.searchsorted(grid, claim.privacy_budget, side="right") - 1
    code, scale = claim.stated.family, claim.stated.scale
    unit = np.stack([unit_value(np.array(each, np.int8), grid) for each in range(STEP + 1)])
    best = np.full(len(price), -1)
    best_utility, best_payment = np.full(len(price), NOT_ALLOWED), np.zeros(len(price))

    def look(place: Ints, top: Floats, climb: Floats) -> None:
        """Tries places (K, C) of pieces that end at payments `top` after rising by `climb`."""
        nonlocal best, best_utility, best_payment
        missing = 1.0 - (place % PARTS + 1) / PARTS
        payment = top - climb * missing
        with np.errstate(over="ignore"):
            utility = payment - unit[code[:, None], place] * scale[:, None]
        utility[(place < first) | (place > last[:, None])] = NOT_ALLOWED
        column = place.shape[1] - 1 - utility[:, ::-1].argmax(axis=1)
        found = utility[rows, column], place[rows, column], payment[rows, column]
        better = (found[0] > best_utility) | ((found[0] == best_utility) & (found[1] > best))
        best_utility = np.where(better, found[0], best_utility)
        best = np.where(better, found[1], best)
        best_payment = np.where(better, found[2], best_payment)

    if inside:
        step = grid[0]
        worth = np.maximum(PARTS * step * scale[:, None], LEAST_NUMBER)
        with np.errstate(divide="ignore", over="ignore"):
            slope = rise / worth
            agree = np.where(code[:, None] == QUADRATIC, 0.5 * slope, np.log(slope))
        below = (np.clip(agree, 0.0, grid[-1]) / step).astype(np.int64) - 1
        for k in (0, 1):
            look(np.clip(below + k, ends - (PARTS - 1), ends), price, rise)
    else:
        look(np.broadcast_to(ends, price.shape), price, rise)
    for place in (np.full(len(price), first), np.maximum(last, 0)):
        piece = place // PARTS
        look(place[:, None], price[rows, piece][:, None], rise[rows, piece][:, None])
    sells = best_utility >= 0
    return np.where(sells, grid[best], 0.0), np.where(sells, best_payment, 0.0)


def favourite_pair(
    claim: Claim, grid: Floats, unit: Floats, money: Floats
) -> tuple[Floats, Floats, Floats]:
    """(K,) privacy loss, payment and records of the best pair of a loss and a number of records.

    `unit` (K, G) are prices for a record. The records are whole, and at most as many as she has and
    the money (K,) pays. The value of a table does not depend on them.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        affordable = np.floor(money[:, None] / unit)
    affordable = np.where(np.isnan(affordable), 0.0, affordable)
    most = np.minimum(claim.data_size[:, None], affordable)
    # Rounding can make the last of them cost more than the money.
    most -= most * unit > money[:, None]
    cost = claim.values_at(grid)
    records, share = _records(claim, most, unit, cost)
    paid = np.where(records >= 1, records * unit, -np.inf)
    cost[records < 1] = 0.0  # it is not for sale, and may be infinite
    best, sells = claim.best_of(grid, paid, cost * share)
    at = np.arange(len(best)), best
    return (
        np.where(sells, grid[best], 0.0),
        np.where(sells, paid[at], 0.0),
        np.where(sells, records[at], claim.data_size),
    )


def _records(claim: Claim, most: Floats, unit: Floats, cost: Floats) -> tuple[Floats, Floats]:
    """(K, G) the best number of records at each loss, and their share of the cost of all records.

    Where value is in proportion to records, or does not depend on them, most records are best:
    utility is straight in their number. Elsewhere all numbers are tried.
    """
    family, size = claim.stated.family, claim.data_size
    fixed = (family == TABLE) | (family == STEP)
    records, share = most, np.where(fixed[:, None], 1.0, most / size[:, None])
    for code in present(family[~fixed]):
        if in_proportion_to_size(code):
            continue
        records = records.copy() if records is most else records
        rows = np.flatnonzero(family == code)
        every = np.arange(1.0, size[rows].max() + 1.0)
        factor = size_factor(np.array(code, np.int8), every)
        for row in rows:
            part = factor / size_factor(np.array(code, np.int8), size[row])
            utility = every * unit[row, :, None] - cost[row, :, None] * part
            utility[every > most[row, :, None]] = -np.inf
            best = utility.shape[1] - 1 - utility[:, ::-1].argmax(axis=1)
            records[row] = np.where(most[row] >= 1, every[best], 0.0)
            share[row] = part[best]
    return records, share
