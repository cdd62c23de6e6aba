"""All-in's winners, each paid her Myerson threshold (docs/theory.md, section 2).

These payments make the auction truthful for single-minded owners.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.all_in import all_in_limit
from flmarket_sim.auctions.auction import TRUTHFUL_FOR_STEPS, Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import STEPS, Sorted, admit, before
from flmarket_sim.auctions.market_scale import InScale
from flmarket_sim.auctions.ranking_value import RanksByValue
from flmarket_sim.owners.bids import BidBatch


class AllInCritical(RanksByValue):
    """All-in repaired: the same winners, each paid her critical value.

    That is the highest unit valuation at which she would still have won. `value` says what a unit
    is (ranking_value.py).
    """

    name = "all-in-critical"
    formula = "the winners of all-in; pay x_i t_i, t_i the largest r_i at which she still wins"
    reference = "Myerson, Optimal Auction Design (1981), applied to the All-in of FL-Market"
    guarantees = TRUTHFUL_FOR_STEPS

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        market = InScale.of(bids.full_value, self.amounts(bids), budget)
        ranked = Sorted.by_unit_value(market.value, market.amount)
        won = admit(ranked.amount, all_in_limit(ranked, market.budget))
        threshold = critical_unit_values(ranked, won, market.budget)
        return ranked.whole_sales(bids, won, market.in_money(ranked.amount * threshold))


def critical_unit_values(ranked: Sorted, won: NDArray[np.bool_], budget: Floats) -> Floats:
    """(K, n) by place: the largest unit valuation with which a winner still wins, 0 for losers.

    By definition, winner i walks through all others in ascending r, with the sum S that All-in
    would have without her. Her threshold is the maximum of min(r_j, B / (S + x_i)) over the walk,
    and the last B / (S + x_i). Three facts shorten the walk:

    - Up to her own place or the first refusal f, whichever is later, the others win or lose as
      before. So the walk starts there, with S less x_i, and with the r of the place before as the
      maximum.
    - r_j rises and B / (S + x_i) falls, so the maximum is decided where they cross.
    - They cross soon after f, where the budget runs out. Walks that are longer than STEPS places
      are left to `far_thresholds`.
    """
    n = won.shape[1]
    unit, amount = ranked.unit_value, ranked.amount
    limit = all_in_limit(ranked, budget)  # r s <= B as the auction itself decides it: s <= limit
    refused = ~won
    first_refusal = np.where(refused.any(axis=1), refused.argmax(axis=1), n)
    row, place = np.nonzero(won)
    own = amount[row, place]
    money = budget[row]
    sums = np.concatenate(
        [before(np.where(won, amount, 0.0)), np.where(won, amount, 0.0).sum(1, keepdims=True)], 1
    )
    at = np.maximum(first_refusal[row], place + 1)
    total = sums[row, at] - own
    best = unit[row, at - 1]

    active = np.arange(len(row))
    for _ in range(STEPS):
        active = active[at[active] < n]
        if not len(active):
            break
        k, j = row[active], at[active]
        r, x, most = unit[k, j], amount[k, j], limit[k, j]
        crossed = total[active] + own[active] >= most
        active, r, x, most = active[~crossed], r[~crossed], x[~crossed], most[~crossed]
        best[active] = r
        total[active] += np.where(total[active] + x <= most, x, 0.0)
        at[active] += 1
    threshold = np.zeros_like(unit)
    threshold[row, place] = np.maximum(best, money / (total + own))
    active = active[at[active] < n]
    for k in np.unique(row[active]).tolist():
        winners = active[row[active] == k]
        begin = np.maximum(first_refusal[k], place[winners] + 1)
        threshold[k, place[winners]] = far_thresholds(
            unit[k], amount[k], limit[k], won[k], sums[k], float(budget[k]), begin, own[winners]
        )
    return threshold


def far_thresholds(
    unit: Floats,
    amount: Floats,
    limit: Floats,
    won: NDArray[np.bool_],
    sums: Floats,
    money: float,
    begin: NDArray[np.int64],
    own: Floats,
) -> Floats:
    """The ends of all long walks of one market's winners in n log n, without walking.

    Let S_j be All-in's own sum before place j. A walk without i has S_j - x_i there while the
    others win or lose as before, and meets r_j (S_j - x_i + x_i) = B at a place c that is the same
    for all winners. It leaves that path at the first place that was refused and fits now: r_j (S_j
    - x_i + x_j) <= B. That place did not fit before, r_j (S_j + x_j) > B, so the walk ends there,
    at r_j.

    `begin` and `own` (w,) are the first places of the walks and the winners' amounts; sums (n + 1,)
    is S, and `limit` is B / r.
    """
    crossed = sums[:-1] >= limit
    end = int(crossed.argmax()) if crossed.any() else len(unit)
    lacking = np.where(won, np.inf, sums[:-1] + amount - limit)[:end]
    fitting = first_at_most(lacking, begin, own)
    left = fitting < end
    last = np.maximum(unit[begin - 1], max(unit[end - 1], money / sums[end]))
    return np.where(left, unit[np.minimum(fitting, end - 1)], last)


def first_at_most(values: Floats, begin: NDArray[np.int64], most: Floats) -> NDArray[np.int64]:
    """(queries,) the first place from `begin` on with a value of at most `most`; else len(values).

    `blocks` has the minima of 1, 2, 4, ... values from every place on. A query skips the largest
    blocks first.
    """
    blocks = [values]
    while 2 ** len(blocks) <= len(values):
        half = 2 ** (len(blocks) - 1)
        blocks.append(np.minimum(blocks[-1][:-half], blocks[-1][half:]))
    place = begin.copy()
    for power in range(len(blocks) - 1, -1, -1):
        whole = np.flatnonzero(place < len(blocks[power]))
        jumps = whole[blocks[power][place[whole]] > most[whole]]
        place[jumps] += 2**power
    return place
