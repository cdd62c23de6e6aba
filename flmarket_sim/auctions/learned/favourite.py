"""The favourite point of an owner on a price curve, computed exactly from her report.

A price curve pays p(e) for privacy loss e: it starts at (0, 0), is linear between knots, rises, and
is flat beyond the last knot. A report stands for a valuation v on [0, reported budget]. The
favourite maximises p(e) - v(e) over this interval; "nothing" is a choice too.

- A table that fits one of the smooth families (linear, quadratic, sqrt, exponential) to 1e-12 is
  that family. On every linear piece of p, the maximum of p - v is an end of the piece or a known
  stationary point.
- Any other table (steps, arbitrary numbers, a single level) is rounded up: a loss between two
  levels costs as much as the upper one. As p rises, the maximum is at a level.

So the outcome is always a point (e, p(e)) with e within the reported budget, and after a true
report it is the best of these points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Floats
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.valuation import EXPONENTIAL, LINEAR, QUADRATIC, SQRT

TABLE = -1
EXPLAINED = 1e-12  # relative: a table this close to a family is that family
UNIT: dict[int, Callable[[Floats], Floats]] = {
    LINEAR: lambda e: 2.0 * e,
    QUADRATIC: lambda e: e * e,
    SQRT: lambda e: 2.0 * np.sqrt(e),
    EXPONENTIAL: lambda e: np.expm1(e),
}


@dataclass(frozen=True)
class Reading:
    """Reports as valuations, (K, n): family codes (`TABLE`: no family fits), and the money that
    multiplies the family's unit value."""

    family: NDArray[np.int8]
    scale: Floats
    bids: BidBatch

    @classmethod
    def of(cls, bids: BidBatch) -> Reading:
        """Which tables are families. One level cannot tell a family: it stays a table."""
        top = bids.full_value
        family = np.full(bids.shape, TABLE, np.int8)
        if bids.levels > 1:
            share = np.arange(1, bids.levels + 1) / bids.levels
            close = EXPLAINED * top
            for code, power in ((LINEAR, 1.0), (QUADRATIC, 2.0), (SQRT, 0.5)):
                middle = bids.levels // 2 - 1
                maybe = np.abs(bids.values[..., middle] - top * share[middle] ** power) <= close
                _confirm(family, code, maybe, bids, share**power, close)
            maybe = family == TABLE
            unit = _expm1_share(bids.privacy_budget[maybe], share)
            _confirm(family, EXPONENTIAL, maybe, bids, unit, close)
        eb = bids.privacy_budget
        with np.errstate(over="ignore"):
            whole = np.choose(
                family + 1, [np.ones_like(eb), 2.0 * eb, eb * eb, 2.0 * np.sqrt(eb), np.expm1(eb)]
            )
        return cls(family, top / whole, bids)

    def of_owner(self, rows: NDArray[np.int64], column: NDArray[np.int64]) -> Claim:
        """Owner column[b] of market rows[b], for every b."""
        bids = self.bids
        return Claim(
            self.family[rows, column],
            self.scale[rows, column],
            bids.privacy_budget[rows, column],
            bids.values[rows, column],
        )


@dataclass(frozen=True)
class Claim:
    """One report in each of K markets: family, scale, privacy_budget (K,), values (K, M)."""

    family: NDArray[np.int8]
    scale: Floats
    privacy_budget: Floats
    values: Floats

    def values_at(self, loss: Floats) -> Floats:
        """(K, m) what it says losses (K, m) cost; beyond the budget as at its end."""
        levels = self.values.shape[1]
        cost = np.zeros(loss.shape)
        rows = np.flatnonzero(self.family == TABLE)
        place = np.ceil(loss[rows] / self.privacy_budget[rows, None] * levels - EXPLAINED).astype(
            np.int64
        )
        cost[rows] = np.take_along_axis(self.values[rows], np.clip(place - 1, 0, levels - 1), 1)
        for code, unit in UNIT.items():
            rows = np.flatnonzero(self.family == code)
            cost[rows] = self.scale[rows, None] * unit(
                np.minimum(loss[rows], self.privacy_budget[rows, None])
            )
        return np.where(loss > 0, cost, 0.0)


def favourite(claim: Claim, knots: Floats, price: Floats) -> tuple[Floats, Floats]:
    """(K,) privacy loss and payment of the favourite on curves with prices (K, L) at knots (L,). Of
    two equally good points it is the one with the larger loss."""
    loss, payment = np.zeros(len(price)), np.zeros(len(price))
    for code in (LINEAR, QUADRATIC, SQRT, EXPONENTIAL, TABLE):
        rows = np.flatnonzero(claim.family == code)
        if len(rows):
            whole = len(rows) == len(price)
            curve, eb = (
                (price, claim.privacy_budget)
                if whole
                else (price[rows], claim.privacy_budget[rows])
            )
            if code == TABLE:
                best = _of_table(claim.values[rows], eb, knots, curve)
            else:
                best = _of_family(code, claim.scale[rows], eb, knots, curve)
            loss[rows], payment[rows] = best
    return loss, payment


def curve_at(knots: Floats, price: Floats, loss: Floats) -> Floats:
    """(K, m) price of losses (K, m) on curves (K, L) over knots (L,)."""
    piece = np.minimum(np.searchsorted(knots, loss), len(knots) - 1)
    left, below = np.concatenate([[0.0], knots[:-1]]), np.pad(price, ((0, 0), (1, 0)))
    start = np.take_along_axis(below, piece, 1)
    slope = (np.take_along_axis(price, piece, 1) - start) / (knots - left)[piece]
    return np.asarray(start + slope * (np.minimum(loss, knots[-1]) - left[piece]))


def _of_family(
    code: int, scale: Floats, eb: Floats, knots: Floats, price: Floats
) -> tuple[Floats, Floats]:
    left = np.concatenate([[0.0], knots[:-1]])
    below = np.pad(price[:, :-1], ((0, 0), (1, 0)))
    slope = (price - below) / (knots - left)
    right = np.minimum(knots, eb[:, None])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if code == QUADRATIC:
            loss = np.clip(0.5 * slope / scale[:, None], left, right)
        elif code == EXPONENTIAL:
            loss = np.clip(np.log(slope / scale[:, None]), left, right)
        else:
            loss = right
    loss = np.where(np.isnan(loss), right, loss)  # a value and a payment of 0
    open_ = left < eb[:, None]
    loss = np.where(open_, loss, 0.0)
    paid = np.where(open_, below + slope * (loss - left), 0.0)
    return _best(loss, paid, scale[:, None] * UNIT[code](loss))


def _of_table(values: Floats, eb: Floats, knots: Floats, price: Floats) -> tuple[Floats, Floats]:
    levels = values.shape[1]
    loss = eb[:, None] * (np.arange(1, levels + 1) / levels)
    return _best(loss, curve_at(knots, price, loss), values)


def _best(loss: Floats, paid: Floats, value: Floats) -> tuple[Floats, Floats]:
    utility = paid - value
    last = utility.shape[1] - 1
    best = last - utility[:, ::-1].argmax(axis=1)
    rows = np.arange(len(loss))
    sells = (utility[rows, best] >= 0) & (loss[rows, best] > 0)
    return np.where(sells, loss[rows, best], 0.0), np.where(sells, paid[rows, best], 0.0)


def _confirm(
    family: NDArray[np.int8],
    code: int,
    maybe: NDArray[np.bool_],
    bids: BidBatch,
    share: Floats,
    close: Floats,
) -> None:
    """Marks those of `maybe` whose whole table is `share` (M,) or (count, M) of its top."""
    maybe = maybe & (family == TABLE) if code != EXPONENTIAL else maybe
    top = bids.full_value[maybe]
    fits = (np.abs(bids.values[maybe] - top[:, None] * share) <= close[maybe][:, None]).all(axis=1)
    family[maybe] = np.where(fits, code, TABLE)


def _expm1_share(eb: Floats, share: Floats) -> Floats:
    """(count, M) expm1(eb m / M) / expm1(eb)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(
            np.nan_to_num(np.expm1(eb[:, None] * share) / np.expm1(eb)[:, None], nan=0.0)
        )
