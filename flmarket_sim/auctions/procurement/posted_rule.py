"""The best rule of two posted ratios within a budget, exactly and for K markets at once.

A rule (low, high, chance) posts to each owner the ratio `high` with the chance f, and `low`
otherwise. So owners with x <= low sell surely, for low + f (high - low) a unit on average, and
owners with low < x <= high sell with the chance f at `high`. This is the rule (p1, p2, f) of
Greedy-II (Rubinstein and Zhao; their code, Beyond Worst Case Analysis of Budget Feasible
Mechanisms, is at github.com/Junyaozhao/procurement_supp).

Let u(p) be the value of the owners with x <= p, and p u(p) what they cost at one posted ratio p.
The rule buys (1 - f) u(low) + f u(high) on average, and spends the same mixture of low u(low) and
high u(high). So the best rule is the point above the budget on the concave hull of all points
(p u(p), u(p)), and the search is for the hull's edge there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.greedy import Sorted

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PostedPoints:
    """What single posted ratios buy, in ascending order of the ratio, each (K, n + 1).

    ratio   what is posted for a unit of value; the first is 0, which buys nothing from owners who
            ask for something
    sold    the value of the owners who accept it
    cost    ratio times sold
    usable  whether the point stands for a ratio: of owners with equal ratios only the last one
            does, because a posted ratio buys from all of them; and nobody posts an infinite ratio
    """

    ratio: Floats
    sold: Floats
    cost: Floats
    usable: Bools

    @classmethod
    def of(cls, value: Floats, amount: Floats) -> PostedPoints:
        """The points of owners who ask `value` (K, n) for sales that count as `amount` (K, n)."""
        ranked = Sorted.by_unit_value(value, amount)
        real = np.isfinite(ranked.unit_value)
        ratio = _after_zero(np.where(real, ranked.unit_value, 0.0))
        sold = np.cumsum(_after_zero(np.where(real, ranked.amount, 0.0)), axis=1)
        with np.errstate(over="ignore"):
            cost = ratio * sold
        usable = np.isfinite(cost)
        usable[:, 1:] &= real
        usable[:, :-1] &= (ratio[:, 1:] > ratio[:, :-1]) | ~real
        return cls(ratio, sold, cost, usable)

    def cutoff(self, budget: Floats) -> Ints:
        """(K,) the place of the best single ratio within budgets (K,)."""
        fits = self.usable & (self.cost <= budget[:, None])
        place: Ints = np.where(fits, self.sold, -1.0).argmax(axis=1)
        return place


@dataclass(frozen=True)
class PostedRule:
    """The rules of K markets, each (K,): ratios `low` and `high`, the `chance` of the high one, and
    the mean `sold` value."""

    low: Floats
    high: Floats
    chance: Floats
    sold: Floats

    @classmethod
    def best(cls, value: Floats, amount: Floats, budget: Floats) -> PostedRule:
        """The rule that buys most on average, and spends at most `budget` (K,) on average.

        It starts with the best single ratio within the budget and any point beyond the budget. A
        point above the line through the two replaces the one on its side of the budget, and the
        line's value at the budget rises. When there is no such point, the line is the hull's edge.
        """
        points = PostedPoints.of(value, amount)
        rows = np.arange(len(budget))
        low = points.cutoff(budget)
        beyond = points.usable & (points.cost > budget[:, None])
        active = np.asarray(beyond.any(axis=1))
        high = np.where(active, beyond.argmax(axis=1), low)
        sold, chance = _mixed(points, low, high, budget)
        while active.any():
            at = rows[active]
            place = _highest_above(points, at, low[at], high[at])
            inside = points.cost[at, place] <= budget[at]
            new_low = np.where(inside, place, low[at])
            new_high = np.where(inside, high[at], place)
            better, share = _mixed(points, new_low, new_high, budget, at)
            rises = better > sold[at]
            moved = at[rises]
            low[moved], high[moved] = new_low[rises], new_high[rises]
            sold[moved], chance[moved] = better[rises], share[rises]
            active[at[~rises]] = False
        return cls(points.ratio[rows, low], points.ratio[rows, high], chance, sold)

    def each(self, repeat: Callable[[Floats], Floats]) -> PostedRule:
        """The same rules with all columns repeated."""
        return PostedRule(*map(repeat, (self.low, self.high, self.chance, self.sold)))

    def posted(self, coin: Floats) -> Floats:
        """(K, n) ratios posted to owners with these uniform numbers (K, n)."""
        high = coin < self.chance[:, None]
        return np.where(high, self.high[:, None], self.low[:, None])


def _after_zero(places: Floats) -> Floats:
    return np.concatenate([np.zeros((len(places), 1)), places], axis=1)


def _mixed(
    points: PostedPoints, low: Ints, high: Ints, budget: Floats, rows: Ints | None = None
) -> tuple[Floats, Floats]:
    """The value that mixtures of two points buy for exactly the budget, and the chance of the
    second; the first point alone where there is no second."""
    at = np.arange(len(budget)) if rows is None else rows
    first, second = points.cost[at, low], points.cost[at, high]
    dearer = second > first
    gap = np.where(dearer, second - first, 1.0)
    chance = np.where(dearer, (budget[at] - first) / gap, 0.0)
    sold = points.sold[at, low]
    return sold + chance * (points.sold[at, high] - sold), chance


def _highest_above(points: PostedPoints, at: Ints, low: Ints, high: Ints) -> Ints:
    """The point that is highest above the line through two points, in each of these markets."""
    cost, sold = points.cost[at], points.sold[at]
    own = np.arange(len(at))
    with np.errstate(over="ignore", invalid="ignore"):
        rise = sold[own, high] - sold[own, low]
        slope = rise / (cost[own, high] - cost[own, low])
        above = sold - slope[:, None] * cost
    place: Ints = np.where(points.usable[at], above, -np.inf).argmax(axis=1)
    return place
