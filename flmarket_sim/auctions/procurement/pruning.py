"""Pruning (Gravin, Jin, Lu and Zhang 2020): who is cheap enough to share the budget.

Owners who ask for more than the budget B leave. Let S(p) be those of the others with x <= p, i*
the one of largest value in it, and v(A) the sum of values in A. The unit price p starts at
B / (largest value) and falls until v(S(p) without i*) p <= B. As it falls, owners of equal ratio
leave one by one. At the end, with S and p:

    x <= p and v_i p <= B for every owner of S
    v(S without i*) p <= B <= v(S) p
    the fractional optimum, over owners who ask for at most B, is at most v(S) + (B - c(S)) / p

The second line holds where the price jumps past an owner k: v(S + k without i*) p > B, and v_k is
at most the largest value. In the third line, all who are not in S have x >= p.

For an owner of S neither S nor p changes when she asks less, or more up to v_i p, since the walk to
p is the same; and if she asks more she leaves. So an offer of at most v_i p that depends on S, p,
values, and coins is truthful in what is asked. It is not in the value: an owner who understates
hers can make the walk stop earlier, where the offers to her group are better.

The text of the publication was not at hand. The step is as it is commonly told, and the proofs
above do not rest on the publication.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Outcome
from flmarket_sim.auctions.greedy import Sorted
from flmarket_sim.auctions.market_scale import InScale
from flmarket_sim.owners.bids import BidBatch

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Pruned:
    """What is left of K markets after pruning.

    ratio  (K, n) x of every owner; infinite for those who ask for more than the budget
    major  (K, n) who is in the more valuable one of the groups {i*} and S without i*
    minor  (K, n) who is in the other group
    price  (K,) p, at which all of `major` and a part of `minor` can be paid
    rest   (K,) the price at which `minor` can be paid what `major` leaves; at most p
    """

    ratio: Floats
    major: Bools
    minor: Bools
    price: Floats
    rest: Floats

    @classmethod
    def of(cls, value: Floats, amount: Floats, budget: Floats) -> Pruned:
        """The pruning of owners who ask `value` for sales of `amount` (K, n), with `budget` (K,).

        S is a prefix of the owners in ascending x. A prefix with x_m at its end can stand if
        x_m <= B / (largest value) and x_m v(prefix without i*) <= B. The left sides do not fall
        with m, so S is the longest prefix that can stand.
        """
        asked = np.where(value > budget[:, None], np.inf, value)
        ranked = Sorted.by_unit_value(asked, amount)
        unit, real = ranked.unit_value, np.isfinite(ranked.unit_value)
        sizes = np.where(real, ranked.amount, 0.0)
        peak = np.maximum.accumulate(sizes, axis=1)
        others = np.zeros_like(sizes)  # v(prefix without i*), without a difference of large numbers
        others[:, 1:] = np.cumsum(np.minimum(sizes[:, 1:], peak[:, :-1]), axis=1)
        top = peak[:, -1]
        start = np.divide(budget, top, out=np.zeros_like(budget), where=top > 0)
        stands = real & (unit <= start[:, None])
        stands &= np.where(real, unit, 0.0) * others <= budget[:, None]
        stands = np.logical_and.accumulate(stands, axis=1)
        count = stands.sum(axis=1)
        rows, last = np.arange(len(count)), np.maximum(count - 1, 0)
        shared = np.where(count > 0, others[rows, last], 0.0)
        price = np.minimum(start, _next(unit, count))
        price = np.minimum(
            price, np.divide(budget, shared, out=np.full_like(budget, np.inf), where=shared > 0)
        )
        price = np.maximum(price, np.where(count > 0, unit[rows, last], 0.0))  # but for rounding
        kept = ranked.restore(stands)
        return _grouped(ranked.restore(unit), kept, amount, shared, price, budget)

    def sales(
        self, bids: BidBatch, market: InScale, major_price: Floats, minor_price: Floats
    ) -> Outcome:
        """Whole sales of the owners of S who ask for at most the price (K,) of their group."""
        price = np.where(self.major, major_price[:, None], minor_price[:, None])
        sells = (self.major | self.minor) & (self.ratio <= price)
        paid = np.maximum(
            price * market.amount, market.value, where=sells, out=np.zeros_like(price)
        )
        return Outcome(np.where(sells, bids.privacy_budget, 0.0), market.in_money(paid))


def _next(unit: Floats, count: NDArray[np.int64]) -> Floats:
    n = unit.shape[1]
    following = unit[np.arange(len(count)), np.minimum(count, n - 1)]
    return np.where(count < n, following, np.inf)


def _grouped(
    ratio: Floats, kept: Bools, amount: Floats, others: Floats, price: Floats, budget: Floats
) -> Pruned:
    """The two groups. Of owners of equal value the first in the order of the bids is i*, whatever
    they ask."""
    rows = np.arange(len(kept))
    star = np.where(kept, amount, -1.0).argmax(axis=1)
    alone = np.zeros_like(kept)
    alone[rows, star] = kept[rows, star]
    top = np.where(kept[rows, star], amount[rows, star], 0.0)
    star_is_major = (top > others)[:, None]
    major = np.where(star_is_major, alone, kept & ~alone)
    minor = np.where(star_is_major, kept & ~alone, alone)
    large, small = np.maximum(top, others), np.minimum(top, others)
    left = np.maximum(budget - large * price, 0.0)
    rest = np.divide(left, small, out=np.zeros_like(left), where=small > 0)
    return Pruned(ratio, major, minor, price, np.minimum(rest, price))
