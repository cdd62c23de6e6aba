"""All-in's winners at the prices that make it truthful: each is paid her Myerson threshold (THEORY section 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.all_in import all_in_limit
from flmarket_sim.auctions.contract import Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import Sorted, admit, before
from flmarket_sim.bids import BidBatch


class AllInCritical:
    """All-in repaired: the same winners, each paid the highest unit valuation at which she would still have won."""

    name = "all-in-critical"
    guarantees = {"truthful": "single-minded", "individually_rational": "any", "budget_feasible": "any"}

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
    - they cross soon after f, where the budget runs out.
    """
    n = won.shape[1]
    unit, amount = ranked.unit_value, ranked.amount
    refused = ~won
    first_refusal = np.where(refused.any(axis=1), refused.argmax(axis=1), n)
    row, place = np.nonzero(won)
    own = amount[row, place]
    money = budget[row]
    sums = np.concatenate([before(np.where(won, amount, 0.0)), np.where(won, amount, 0.0).sum(1, keepdims=True)], 1)
    at = np.maximum(first_refusal[row], place + 1)
    total = sums[row, at] - own
    best = unit[row, at - 1]

    active = np.arange(len(row))
    while True:
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
    return threshold
