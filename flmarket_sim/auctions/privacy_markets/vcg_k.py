"""VCG-k: the k cheapest owners sell the same privacy loss at the price of the next one."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.owners.bids import BidBatch


class VcgK:
    """The k owners with the least v sell e = 1 / (n - k) each, for v_(k+1) e each.

    v is what an owner asks for a unit of privacy loss, her whole ask over her privacy budget, and k
    is the largest number below n with k v_(k+1) / (n - k) <= B. It is the baseline "VCG" of Sun,
    Li, Chen, Meng and Guo, "Privacy as Commodity: MFG-RegretNet for Large-Scale Privacy Trading in
    Federated Learning" (arXiv 2603.28329, 2026), after Ghosh and Roth (2011). `loss` replaces the 1
    of 1 / (n - k). There are no privacy budgets in that market; here an owner sells min(e, budget),
    and k does not depend on budgets.

    The publication claims truth and individual rationality for costs in proportion to the loss,
    which is no class of `claims`. Owners of such costs are indeed never underpaid, and cannot gain
    by other values or budgets. But an owner who reports fewer records sells fewer for the same
    money, and other valuations (a step, a square root) are underpaid, since a part of a budget
    costs more than its share of the ask.
    """

    name = "vcg-k"
    formula = "the largest k with k v_(k+1) / (n - k) <= B; sell 1 / (n - k), pay v_(k+1) / (n - k)"
    reference = "Sun, Li, Chen, Meng and Guo, Privacy as Commodity (arXiv 2603.28329, 2026)"
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(self, loss: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0) -> None:
        self.loss = loss

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        markets, n = bids.shape
        if n < 2:
            return Outcome(np.zeros((markets, n)), np.zeros((markets, n)))
        with np.errstate(over="ignore"):  # who asks more than any number for a unit wins nothing
            unit = bids.full_value / bids.privacy_budget
        order = np.argsort(unit, axis=1, kind="stable")
        ranked = np.take_along_axis(unit, order, axis=1)
        k = np.arange(1, n)
        loss = self.loss / (n - k)
        with np.errstate(over="ignore"):
            possible = k * (ranked[:, 1:] * loss) <= budget[:, None]
        count = np.where(possible, k, 0).max(axis=1)
        rows = np.arange(markets)
        price = np.where(count > 0, ranked[rows, count], 0.0)  # of a unit of privacy loss
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.broadcast_to(np.arange(n), order.shape), axis=1)
        most = np.where(count > 0, loss[np.maximum(count, 1) - 1], 0.0)
        sold = np.where(place < count[:, None], np.minimum(most[:, None], bids.privacy_budget), 0.0)
        return Outcome(sold, price[:, None] * sold)
