"""Pay as bid: the manipulable baseline."""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.greedy import Sorted, admit
from flmarket_sim.owners.bids import BidBatch


class PayAsBid:
    """Cheapest unit valuations first while the money lasts; every winner gets exactly what she asked."""

    name = "pay-as-bid"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        ranked = Sorted.by_unit_value(bids)
        won = admit(
            ranked.value, np.broadcast_to(budget[:, None] * (1 + 1e-12), ranked.value.shape)
        )
        winners = ranked.restore(won)
        return Outcome(
            np.where(winners, bids.privacy_budget, 0.0), np.where(winners, bids.full_value, 0.0)
        )
