"""Multinomial logistic regression, gradients of many owners in one pass.

Products are computed in float32, the precision of the features. Gradients are float64, in which
they are clipped.
"""

from __future__ import annotations

import numpy as np

from flmarket_sim.learning.buyer_model import Evaluation, Floats, Ints, evaluation
from flmarket_sim.learning.dataset import Dataset, Features

CHUNK = 131_072  # most records in memory at once
ELEMENTS = 2**25  # most features of them


class Logistic:
    """Multinomial logistic regression with intercepts, started at zero.

    D = (features + 1) x classes.
    """

    name = "logistic"

    def __init__(self, features: int, classes: int) -> None:
        self.features, self.classes = features, classes
        self.dimension = (features + 1) * classes

    def initial(self) -> Floats:
        return np.zeros(self.dimension)

    def gradients(self, parameters: Floats, data: Dataset, rows: Ints, sizes: Ints) -> Floats:
        """One softmax over the records of many owners, then one product for each owner's rows."""
        ends = np.cumsum(sizes)
        most = min(CHUNK, max(1, ELEMENTS // self.features))
        result = np.empty((len(sizes), self.features + 1, self.classes))
        first = 0
        while first < len(sizes):
            begin = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, begin + most, side="right")), first + 1)
            chunk = rows[begin : int(ends[last - 1])]
            x = data.train_x[chunk]
            residual = self._probabilities(parameters, x)
            residual[data.train_y[chunk], np.arange(len(chunk))] -= 1.0
            start = 0
            for owner in range(first, last):
                stop = int(ends[owner]) - begin
                part = residual[:, start:stop]
                result[owner, :-1] = (part @ x[start:stop]).T
                result[owner, -1] = part.sum(axis=1)
                start = stop
            first = last
        result /= np.asarray(sizes, float)[:, None, None]
        return result.reshape(len(sizes), self.dimension)

    def evaluate(self, parameters: Floats, data: Dataset) -> Evaluation:
        logits = self._logits(parameters, data.test_x)
        top = logits.max(axis=0)
        chosen = logits[data.test_y, np.arange(len(data.test_y))]
        loss = float(
            (top + np.log(np.exp(logits - top).sum(axis=0)) - chosen).mean(dtype=np.float64)
        )
        return evaluation(loss, logits.argmax(axis=0), data.test_y, self.classes)

    def _logits(self, parameters: Floats, x: Features) -> Features:
        """(classes, records): sums and maxima over classes then run along whole rows."""
        table = parameters.reshape(self.features + 1, self.classes).astype(np.float32)
        return np.ascontiguousarray((x @ table[:-1] + table[-1]).T)

    def _probabilities(self, parameters: Floats, x: Features) -> Features:
        """(classes, records)"""
        logits = self._logits(parameters, x)
        logits -= logits.max(axis=0)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=0)
        return logits
