"""The classifier of the authors' code: a linear layer, a sigmoid, and cross-entropy of the outputs.

Cross-entropy applies a softmax of its own, here to numbers in [0, 1]. So no class gets a
probability above e / (e + classes - 1), and no record's loss falls to 0.
"""

from __future__ import annotations

import numpy as np

from flmarket_sim.learning.buyer_model import Ints
from flmarket_sim.learning.dataset import Features
from flmarket_sim.learning.logistic import Logistic, Start, softmax_residual


class SigmoidLogistic(Logistic):
    """Softmax over sigmoids of linear scores, started at random as in the authors' code.

    With h = sigmoid(logits), a record's slope by its logits is (softmax(h) - label) h (1 - h).
    """

    name = "sigmoid-logistic"

    def __init__(self, features: int, classes: int, start: Start = "random") -> None:
        super().__init__(features, classes, start)

    def _scores(self, logits: Features) -> Features:
        """(classes, records) the sigmoids, as (1 + tanh(logits / 2)) / 2, which cannot overflow.

        They are written over the logits.
        """
        logits *= 0.5
        np.tanh(logits, out=logits)
        logits += 1.0
        logits *= 0.5
        return logits

    def _slope(self, logits: Features, labels: Ints) -> Features:
        sigmoids = self._scores(logits)
        slope = sigmoids * (1.0 - sigmoids)
        slope *= softmax_residual(sigmoids, labels)
        return slope
