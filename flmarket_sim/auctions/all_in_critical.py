"""All-in's winners, each paid her Myerson threshold (docs/theory.md, section 2).

These payments make the auction truthful for single-minded owners.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.all_in import all_in_limit
from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import STEPS, Sorted, admit, before
from flmarket_sim.owners.bids import BidBatch


class AllInCritical:
    """All-in repaired: the same winners, each paid the highest unit valuation at which she would still have won."""

    name = "all-in-critical"
    guarantees = {
        "truthful": "single-minded",
        "individually_rational": "any",
        "budget_feasible": "any",
    }

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        ranked = Sorted.by_unit_value(bids)
        won = admit(ranked.amount, all_in_limit(ranked, budget))
        threshold = critical_unit_values(ranked, won, budget)
        payment = np.where(won, ranked.amount * threshold, 0.0)
        winners = ranked.restore(won)
        return Outcome(np.where(winners, bids.privacy_budget, 0.0), ranked.restore(payment))


def critical_unit_values(ranked: Sorted, won: NDArray[np.bool_], budget: Floats) -> Floats:
    """(K, n) by place: the largest unit valuation with which a winner still wins, 0 for losers.

    The definition walks, for each winner i, through all others in ascending r with the sum S that All-in would
    have without i, and takes the maximum of min(r_j, B / (S + x_i)) and the last B / (S + x_i). Three facts shorten the walk:

    - up to her own place and up to the first refusal f (whichever is later) nobody's fate changes without her, so the
      walk starts there, with S less x_i and the maximum at the r of the place before;
    - r_j rises and B / (S + x_i) falls, so the maximum is settled where they cross;
    - they cross soon after f, where the budget runs out. Where they do not, after STEPS places, `far_thresholds` knows the end.
    """
    n = won.shape[1]
    unit, amount = ranked.unit_value, ranked.amount
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
        r, x = unit[k, j], amount[k, j]
        crossed = r * (total[active] + own[active]) >= money[active]
        active, r, x = active[~crossed], r[~crossed], x[~crossed]
        best[active] = r
        total[active] += np.where(r * (total[active] + x) <= money[active], x, 0.0)
        at[active] += 1
    threshold = np.zeros_like(unit)
    threshold[row, place] = np.maximum(best, money / (total + own))
    active = active[at[active] < n]
    for k in np.unique(row[active]).tolist():
        mine = active[row[active] == k]
        begin = np.maximum(first_refusal[k], place[mine] + 1)
        threshold[k, place[mine]] = far_thresholds(
            unit[k], amount[k], won[k], sums[k], float(budget[k]), begin, own[mine]
        )
    return threshold


def far_thresholds(
    unit: Floats,
    amount: Floats,
    won: NDArray[np.bool_],
    sums: Floats,
    money: float,
    begin: NDArray[np.int64],
    own: Floats,
) -> Floats:
    """Where the walks of one market's winners end, without walking: n log n for all of them, for markets where walks are long.

    With S_j All-in's own sum before place j, a walk without i has S_j - x_i there as long as everybody's fate is as it was, and
    meets r_j (S_j - x_i + x_i) = B at a place c that is the same for all. It leaves that path at the first place that was
    refused and fits now, r_j (S_j - x_i + x_j) <= B; as it did not fit before, r_j (S_j + x_j) > B: the walk is decided there, at r_j.

    `begin` and `own` (w,): where the winners' walks start and their amounts. sums (n + 1,) is S.
    """
    crossed = unit * sums[:-1] >= money
    end = int(crossed.argmax()) if crossed.any() else len(unit)
    with np.errstate(divide="ignore"):
        lacking = np.where(won, np.inf, sums[:-1] + amount - money / unit)[:end]
    found = first_at_most(lacking, begin, own)
    left = found < end
    last = np.maximum(unit[begin - 1], max(unit[end - 1], money / sums[end]))
    return np.where(left, unit[np.minimum(found, end - 1)], last)


def first_at_most(values: Floats, begin: NDArray[np.int64], most: Floats) -> NDArray[np.int64]:
    """For each query the first place from `begin` on whose value is at most `most`, len(values) where there is none.

    Minima of blocks of 1, 2, 4, ... values from every place on; a query jumps over the largest blocks first.
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
