"""Pay as bid: the manipulable baseline."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import Sorted, admit
from flmarket_sim.owners.bids import BidBatch


class PayAsBid:
    """The cheapest unit valuations win while the money lasts, paid as they bid."""

    name = "pay-as-bid"
    formula = "admit by r_i = V_i / x_i while the sum of V_i fits B; pay V_i"
    reference = "a textbook baseline: the first-price auction"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        ranked = Sorted.by_unit_value(bids.full_value, bids.data_size * bids.privacy_budget)
        won = admit(
            ranked.value, np.broadcast_to(budget[:, None] * (1 + 1e-12), ranked.value.shape)
        )
        return ranked.whole_sales(bids, won, ranked.value)
