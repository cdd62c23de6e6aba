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


class Overspends(Everybody):
    """Spends four times the budget."""

    name = "overspends"

    def decide(self, bids, budget, rng):
        return super().decide(bids, 4 * budget, rng)


class BeyondTheBudget(Everybody):
    """Buys more privacy than owners have."""

    name = "beyondthebudget"

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        return Outcome(1000 * outcome.privacy_loss, outcome.payment)


class NotANumber(Everybody):
    """Pays what is no number."""

    name = "notanumber"

    def decide(self, bids, budget, rng):
        return super().decide(bids, np.nan * budget, rng)


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


class HeavyRule:
    """Weights that sum to more than one."""

    name = "heavy"

    def weights(self, privacy_loss, data_size, clip=1.0):
        return np.full(privacy_loss.shape, 3.0)


class NanRule(HeavyRule):
    """Weights that are no numbers."""

    name = "nan"

    def weights(self, privacy_loss, data_size, clip=1.0):
        return np.full(privacy_loss.shape, np.nan)


class CrashingRule(HeavyRule):
    """Fails."""

    name = "crashing"

    def weights(self, privacy_loss, data_size, clip=1.0):
        return 1 / 0


class Picky:
    """Objects to its option."""

    name = "picky"
    guarantees: dict[str, str] = {}

    def __init__(self, chance: float = 2.0) -> None:
        if chance > 1:
            raise ValueError("a chance above 1")

    def decide(self, bids, budget, rng):
        return None
