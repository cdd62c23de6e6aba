"""MFG-Pricing: everybody sells everything, and the budget is divided by privacy losses."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.owners.bids import BidBatch


class MfgPricing:
    """Every owner sells her whole privacy budget e_i and is paid B e_i / sum of e.

    It is the baseline "MFG-Pricing" of Sun, Li, Chen, Meng and Guo, "Privacy as Commodity:
    MFG-RegretNet for Large-Scale Privacy Trading in Federated Learning" (arXiv 2603.28329, 2026): a
    price of the mean field, with no auction. Asks do not matter to it. So it underpays everybody
    who asks for more than her share, and an owner gains by reporting fewer records or, at a loss,
    next to no privacy budget. A single-minded owner cannot gain only because she sells at her full
    cost whatever she reports. Even without money everybody sells.
    """

    name = "mfg-pricing"
    formula = "sell eb_i; pay B eb_i / sum of eb"
    reference = "Sun, Li, Chen, Meng and Guo, Privacy as Commodity (arXiv 2603.28329, 2026)"
    guarantees = {
        "truthful": "single-minded",
        "individually_rational": "none",
        "budget_feasible": "any",
    }

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        loss = np.array(bids.privacy_budget)
        _, size = np.frexp(loss.max(axis=1))
        part = np.ldexp(loss, -size[:, None])  # sums of it are numbers
        share = part / part.sum(axis=1, keepdims=True)
        return Outcome(loss, share * budget[:, None])
