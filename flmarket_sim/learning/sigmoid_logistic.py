"""The classifier of the authors' code: a linear layer, a sigmoid, and cross-entropy of the outputs.

Cross-entropy applies a softmax of its own, here to numbers in [0, 1]. So no class gets a
probability above e / (e + classes - 1), and no record's loss falls to 0.
"""

from __future__ import annotations

import numpy as np

from flmarket_sim.learning.buyer_model import Floats, Ints
from flmarket_sim.learning.dataset import Features
from flmarket_sim.learning.logistic import Logistic, Start, softmax_residual


class SigmoidLogistic(Logistic):
    """Softmax over sigmoids of linear scores, started at random as in the authors' code.

    With h = sigmoid(logits), a record's slope by its logits is (softmax(h) - label) h (1 - h).
    """

    name = "sigmoid-logistic"

    def __init__(self, features: int, classes: int, start: Start = "random") -> None:
        super().__init__(features, classes, start)

    def _scores(self, parameters: Floats, x: Features) -> Features:
        """(classes, records) the sigmoids, as (1 + tanh(logits / 2)) / 2, which cannot overflow."""
        scores = self._logits(parameters, x)
        scores *= 0.5
        np.tanh(scores, out=scores)
        scores += 1.0
        scores *= 0.5
        return scores

    def _residual(self, parameters: Floats, x: Features, labels: Ints) -> Features:
        sigmoids = self._scores(parameters, x)
        slope = sigmoids * (1.0 - sigmoids)
        slope *= softmax_residual(sigmoids, labels)
        return slope
