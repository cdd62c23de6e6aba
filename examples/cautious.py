"""A behaviour: owners who offer a part of their privacy budget first, and more after every sale."""

from __future__ import annotations

import numpy as np

from flmarket_sim.strategy.behaviours import BehaviourReports


class Cautious:
    """Offers the share `first` of her privacy budget, and `step` more after every sale.

    She states her true values for what she offers. Only the privacy budget is misreported.
    """

    name = "cautious"

    def __init__(self, first: float = 0.25, step: float = 0.25) -> None:
        self.first, self.step = first, step
        self.part = np.empty(0)  # by owner number, once the population is known

    def report(self, view):
        if not len(self.part):
            self.part = np.full(len(view.population), self.first)
        offered = view.privacy_budget * self.part[view.owners]
        return BehaviourReports(view.valued(offered, view.data_size), offered, view.data_size)

    def learn(self, feedback):
        sellers = feedback.view.owners[feedback.privacy_loss > 0]
        self.part[sellers] = np.minimum(self.part[sellers] + self.step, 1.0)

    def state(self):
        """What a stopped run needs in order to continue from a checkpoint."""
        return {"part": self.part}

    def restore(self, state):
        self.part = state["part"]
