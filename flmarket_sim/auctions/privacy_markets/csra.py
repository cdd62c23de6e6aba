"""CSRA: the owners with the most quality for their ask, at the price of the next one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import Sorted
from flmarket_sim.auctions.market_scale import NEGLIGIBLE
from flmarket_sim.owners.bids import BidBatch


class Csra:
    """The first k owners by quality over ask win, and are paid q_i b_(k+1) / q_(k+1).

    It is the quality-aware selection of "CSRA: Robust Incentive Mechanism Design for Differentially
    Private Federated Learning" (IEEE Transactions on Information Forensics and Security, 2024):

        q_i = h_i (e_i / sum of e) (d_i / sum of d),
        k the largest number below n with (b_(k+1) / q_(k+1)) sum_{i <= k} q_i <= B

    b_i is the ask for the whole privacy budget e_i on all records d_i. The sum of e is taken over
    the market: owners form one group. h_i, the share of past rounds without suspicion, is 1 for
    everybody, because an auction keeps no state between rounds; the detection of owners who add
    more noise than they sold is not a part of it. With `sells = "equal"` winners sell
    min(1 / (n - k), e_i) for the same money, as one public version of the baseline does.

    The publication claims truth. It holds for the ask alone. An owner who reports a little less
    privacy or fewer records can make room for one more winner, and then the price of the next but
    one is paid to her too.
    """

    name = "csra"
    formula = (
        "the largest k with (b_(k+1) / q_(k+1)) sum_(i<=k) q_i <= B; pay q_i b_(k+1) / q_(k+1)"
    )
    reference = "CSRA (IEEE Transactions on Information Forensics and Security, 2024)"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}
    claims = {"truthful": "single-minded", "individually_rational": "any"}

    def __init__(self, sells: Literal["whole", "equal"] = "whole") -> None:
        self.sells = sells

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        markets, n = bids.shape
        if n < 2:
            return Outcome(np.zeros((markets, n)), np.zeros((markets, n)))
        ranked = Sorted.by_unit_value(*_asks_and_qualities(bids))
        following, quality = ranked.value[:, 1:], ranked.amount[:, 1:]
        k = np.arange(1, n)
        with np.errstate(all="ignore"):  # what is not finite does not fit
            needed = following * (np.cumsum(ranked.amount, axis=1)[:, :-1] / quality)
            possible = (needed <= budget[:, None]) & np.isfinite(ranked.unit_value[:, 1:])
        count = np.where(possible, k, 0).max(axis=1)
        last = np.maximum(count, 1) - 1
        rows = np.arange(markets)
        won = np.arange(n) < count[:, None]
        share = np.where(won, ranked.amount, 0.0)
        share /= np.where(count > 0, quality[rows, last], 1.0)[:, None]
        payment = share * np.where(count > 0, following[rows, last], 0.0)[:, None]
        outcome = ranked.whole_sales(bids, won, payment)
        if self.sells == "whole":
            return outcome
        equal = 1.0 / (n - np.minimum(count, n - 1))
        return Outcome(np.minimum(outcome.privacy_loss, equal[:, None]), outcome.payment)


def _asks_and_qualities(bids: BidBatch) -> tuple[Floats, Floats]:
    """(K, n) asks, and qualities up to a factor that makes the largest of a market about one.

    Who has next to no quality beside the others asks for an infinite value, so she wins nothing.
    """
    quality = np.asarray(bids.data_size * bids.privacy_budget)
    _, size = np.frexp(quality.max(axis=1))
    quality = np.ldexp(quality, -size[:, None])
    return np.where(quality < NEGLIGIBLE, np.inf, bids.full_value), quality
