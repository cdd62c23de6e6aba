import numpy as np

from flmarket_sim.auctions.auction import Outcome


class Underpaying:
    """Buys all privacy for half of what its owners ask."""

    name = "underpaying"
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def decide(self, bids, budget, rng):
        pay = 0.5 * bids.values[..., -1]
        affordable = np.cumsum(pay, axis=1) <= budget[:, None]
        return Outcome(
            np.where(affordable, bids.privacy_budget, 0.0), np.where(affordable, pay, 0.0)
        )
