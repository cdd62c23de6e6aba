"""The variance of a message against the one that was sold."""

from __future__ import annotations

from typing import Literal

import numpy as np

from flmarket_sim.checks.check import Evidence, Floats
from flmarket_sim.checks.length_law import length_tails, longest_is_known

Side = Literal["both", "more"]


class Variance:
    """The length of a message: too long or too short for the noise that was sold.

    The score is minus the logarithm of the p-value. sides = "both" suspects less noise too: a
    message too short for what was sold. sides = "more" suspects long messages alone. The p-values
    hold for every gradient, whatever it has to do with those of others: their assumption is none.

    A cheat who sends the length that was sold is not noticed. Where the length says all about the
    noise (spheres, cubes), a cheat who does not is always noticed.
    """

    name = "variance"

    def __init__(self, sides: Side = "both") -> None:
        self.sides = sides

    def scores(self, evidence: Evidence) -> Floats:
        return -np.log(np.maximum(self.p_values(evidence), np.finfo(float).tiny))

    def p_values(self, evidence: Evidence) -> Floats:
        messages = evidence.messages
        squared = np.einsum("ij,ij->i", messages, messages)
        low, high = length_tails(
            evidence.perturbation, evidence.privacy_loss, messages.shape[1], evidence.clip, squared
        )
        if self.sides == "more":
            return high
        sides = 1.0 if longest_is_known(evidence.perturbation) else 2.0
        return np.minimum(1.0, sides * np.minimum(low, high))
