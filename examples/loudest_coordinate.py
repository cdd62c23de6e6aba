"""A check of its own: is the largest coordinate of a message too large for what was sold?"""

import numpy as np

from flmarket_sim.checks.any_gradient import under_any_gradient
from flmarket_sim.checks.simulated_noise import counted, releases
from flmarket_sim.perturbation.perturbation import delta_of


class LoudestCoordinate:
    """The largest coordinate, beside those of simulated releases of zeros."""

    name = "loudest-coordinate"

    def scores(self, evidence):
        return np.abs(evidence.messages).max(axis=1)

    def p_values(self, evidence):
        found = self.scores(evidence)
        at_zero = np.ones(len(found))
        dimension = evidence.messages.shape[1]
        for loss in np.unique(evidence.privacy_loss):
            rows = evidence.privacy_loss == loss
            drawn = releases(evidence.perturbation, float(loss), dimension, evidence.clip)
            honest = np.abs(drawn).max(axis=1)
            as_loud = (honest >= found[rows, None] * (1 - 1e-9)).sum(axis=1)
            at_zero[rows] = counted(as_loud, len(honest))
        delta = delta_of(evidence.perturbation)
        return under_any_gradient(at_zero, evidence.privacy_loss, delta)  # zeros or not
