"""Mechanisms that behave badly, or in a way that a test can foresee."""

import numpy as np

from flmarket_sim.auctions import Outcome


class Everybody:
    """Buys everything from everybody and splits the whole budget equally, whatever they asked."""

    name = "everybody"
    guarantees = {"truthful": "any", "individually_rational": "none", "budget_feasible": "any"}

    def decide(self, bids, budget, rng):
        payment = np.broadcast_to(budget[:, None] / bids.shape[1], bids.shape)
        return Outcome(bids.privacy_budget.copy(), payment.copy())


class Nobody(Everybody):
    """Buys nothing."""

    name = "nobody"

    def decide(self, bids, budget, rng):
        return Outcome(np.zeros(bids.shape), np.zeros(bids.shape))


class Spendthrift(Everybody):
    """Spends twice the budget from the third call on."""

    name = "spendthrift"
    calls = 0

    def decide(self, bids, budget, rng):
        self.calls += 1
        return super().decide(bids, budget * (2.0 if self.calls > 2 else 1.0), rng)


class Lottery(Everybody):
    """Buys from a random half."""

    name = "lottery"

    def decide(self, bids, budget, rng):
        wins = rng.random(bids.shape) < 0.5
        whole = super().decide(bids, budget, rng)
        return Outcome(whole.privacy_loss * wins, whole.payment * wins)
