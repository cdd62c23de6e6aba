"""An auction that waits in its second call as long as a file is there."""

import os
import time
from pathlib import Path

import numpy as np

from flmarket_sim.auctions.auction import Outcome

CLOSED = "FLMARKET_TEST_CLOSED"


class Gated:
    """Buys all privacy for what its owners ask, as far as the budget goes."""

    name = "gated"
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def __init__(self):
        self.calls = 0

    def decide(self, bids, budget, rng):
        self.calls += 1
        while self.calls == 2 and Path(os.environ[CLOSED]).exists():
            time.sleep(0.05)
        pay = bids.values[..., -1]
        affordable = np.cumsum(pay, axis=1) <= budget[:, None]
        return Outcome(
            np.where(affordable, bids.privacy_budget, 0.0), np.where(affordable, pay, 0.0)
        )
